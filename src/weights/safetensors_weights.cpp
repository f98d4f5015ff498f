#include <algorithm>
#include <cstring>
#include <memory>

#include "sconce/check.h"
#include "src/tensor_files/safetensors_header.h"
#include "src/weights/placed_weights.h"

namespace sconce::weights {

std::unique_ptr<WeightFile> open_safetensors(InputFile input, const FileOptions& options) {
  using namespace tensor_files;
  auto weights = std::make_unique<PlacedWeights>(options.sha256);
  const std::string where = input.path().string();
  const uint64_t size = input.size();
  const size_t file = weights->add_file(std::move(input));
  uint64_t length = 0;
  SCONCE_CHECK(size >= sizeof length, kCorruptPackage, "safetensors: file ends within its header: ", where);
  std::memcpy(&length, weights->read_header(0, sizeof length).data(), sizeof length);
  SCONCE_CHECK(length <= kMaxSafetensorsHeader, kCorruptPackage, "safetensors: header is too long: ", where, ": ",
               length, " bytes");
  SCONCE_CHECK(length <= size - sizeof length, kCorruptPackage, "safetensors: file ends within its header: ", where,
               ": header of ", length, " bytes, file of ", size);
  const std::vector<std::byte> json = weights->read_header(sizeof length, length);
  const uint64_t data = sizeof length + length;
  SafetensorsHeader header =
      parse_safetensors_header({reinterpret_cast<const char*>(json.data()), json.size()}, size - data, where);
  sort_by_offset(header);
  for (SafetensorsEntry& entry : header.entries) {
    const uint64_t offset = data + entry.begin;
    weights->add({std::move(entry.name), entry.dtype, std::move(entry.shape)}, {}, file, offset);
  }
  return weights;
}

}  // namespace sconce::weights
