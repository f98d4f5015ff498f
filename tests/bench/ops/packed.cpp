// Reads the file of pack_weights.py.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "tests/bench/ops/calls.h"

namespace bench {
namespace {

struct Record {
  uint8_t dtype = 0, opaque = 0, rank = 0;
  Sizes sizes, strides;
  std::vector<uint8_t> description;
  size_t bytes = 0;
  void* data = nullptr;  // never freed
};
std::map<std::string, Record> records;

}  // namespace

void read_packed(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const auto read = [&](void* to, size_t bytes) {
    if (!file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)))
      throw std::runtime_error("the packed weights end early");
  };
  uint8_t length = 0;
  while (file.read(reinterpret_cast<char*>(&length), 1)) {
    std::string name(length, ' ');
    read(name.data(), length);
    Record r;
    read(&r.dtype, 1);
    read(&r.opaque, 1);
    read(&r.rank, 1);
    r.sizes.resize(r.rank);
    r.strides.resize(r.rank);
    read(r.sizes.data(), 8u * r.rank);
    read(r.strides.data(), 8u * r.rank);
    uint32_t described = 0;
    read(&described, 4);
    r.description.resize(described);
    read(r.description.data(), described);
    read(&r.bytes, 8);
    r.data = std::aligned_alloc(64, (r.bytes + 127) / 64 * 64);
    read(r.data, r.bytes);
    records[name] = std::move(r);
  }
}

T packed(const std::string& name) {
  const auto found = records.find(name);
  if (found == records.end()) throw std::runtime_error("no packed weight '" + name + "': give pack_weights.py's file");
  const Record& r = found->second;
  if (r.opaque) return opaque(r.data, r.bytes, static_cast<DType>(r.dtype), r.sizes, r.strides, r.description);
  AtenTensorHandle handle = nullptr;
  check(aoti_torch_create_tensor_from_blob_v2(r.data, r.rank, r.sizes.data(), r.strides.data(), 0, r.dtype, 0, -1,
                                              &handle, 0, nullptr, 0));
  return constant(T(handle));
}

}  // namespace bench
