#include <algorithm>
#include <numeric>

#include "sconce/check.h"
#include "sconce/tensor_files.h"
#include "src/tensor_files/mapped_file.h"
#include "src/tensor_files/npy_header.h"
#include "src/tensor_files/output_file.h"
#include "src/tensor_files/safetensors_header.h"

namespace sconce {
namespace {

struct Parts {
  std::string_view json;
  std::span<std::byte> data;
};

Parts parts_of(const tensor_files::MappedFile& file, const std::string& where) {
  const std::span<std::byte> bytes = file.bytes();
  const uint64_t length = tensor_files::safetensors_header_bytes(bytes, bytes.size(), where);
  return {{reinterpret_cast<const char*>(bytes.data()) + sizeof length, length}, bytes.subspan(sizeof length + length)};
}

}  // namespace

std::vector<NamedTensor> read_safetensors(const std::filesystem::path& path) {
  using namespace tensor_files;
  const std::string where = path.string();
  const auto file = MappedFile::open(path);
  const auto [json, data] = parts_of(*file, where);
  const SafetensorsHeader header = parse_safetensors_header(json, data.size(), where);

  std::vector<NamedTensor> tensors;
  tensors.reserve(header.entries.size());
  for (const SafetensorsEntry& entry : header.entries) {
    const std::span<std::byte> elements = data.subspan(entry.begin, entry.end - entry.begin);
    if (entry.dtype == DType::kBool) check_bools(elements, where + ": " + entry.name);
    std::vector<int64_t> strides(entry.shape.size());
    contiguous_strides(entry.shape, strides.data());
    tensors.push_back({entry.name, view_or_copy(file, elements, entry.dtype, entry.shape, strides)});
  }
  return tensors;
}

std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path) {
  using namespace tensor_files;
  const std::string where = path.string();
  const auto file = MappedFile::open(path);
  const auto [json, data] = parts_of(*file, where);
  return parse_safetensors_header(json, data.size(), where).metadata;
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  using namespace tensor_files;
  const std::string where = path.string();
  // Wide elements first: the format allows no gaps, and so all data is aligned.
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return tensors[a].tensor.itemsize() > tensors[b].tensor.itemsize(); });
  SafetensorsHeader header;
  header.metadata = metadata;
  header.entries.resize(tensors.size());
  uint64_t position = 0;
  for (const size_t i : order) {
    const Tensor& tensor = tensors[i].tensor;
    SCONCE_CHECK(tensor.defined(), kInvalidArgument, "tensor is undefined: ", where, ": ", tensors[i].name);
    const uint64_t begin = position;
    position += tensor.bytes();
    header.entries[i] = {
        tensors[i].name, tensor.dtype(), {tensor.sizes().begin(), tensor.sizes().end()}, begin, position};
  }
  std::vector<std::string_view> names;
  for (const NamedTensor& t : tensors) names.push_back(t.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  SCONCE_CHECK(twice == names.end(), kInvalidArgument, "safetensors: two tensors have the same name: ", where, ": ",
               *twice);
  const std::string text = make_safetensors_header(header, where);
  OutputFile file(path);
  file.write(text);
  for (const size_t i : order)
    for_each_piece(tensors[i].tensor, where + ": " + tensors[i].name,
                   [&](std::span<const std::byte> piece) { file.write(piece); });
  file.commit();
}

}  // namespace sconce
