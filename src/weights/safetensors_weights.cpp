#include <algorithm>
#include <memory>

#include "src/tensor_files/safetensors_header.h"
#include "src/weights/placed_weights.h"

namespace sconce::weights {

std::unique_ptr<WeightFile> open_safetensors(InputFile input, const FileOptions& options) {
  using namespace tensor_files;
  auto weights = std::make_unique<PlacedWeights>(options.sha256);
  const std::string where = input.path().string();
  const uint64_t size = input.size();
  const size_t file = weights->add_file(std::move(input));
  const std::vector<std::byte> start = weights->read_header(0, std::min<size_t>(size, sizeof(uint64_t)));
  const uint64_t length = safetensors_header_bytes(start, size, where);
  const std::vector<std::byte> json = weights->read_header(start.size(), length);
  const uint64_t data = start.size() + length;
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
