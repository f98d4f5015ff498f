// The header of the safetensors format: a 64-bit little-endian length, then a JSON object of that length (padded with
// spaces) that maps each name to its dtype, shape and data_offsets [begin, end) from the end of the header, and
// "__metadata__" to an object of strings. Limits and rules match the safetensors library 0.6: header of at most
// 100,000,000 bytes, data without gaps or overlap, no name twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/tensor.h"

namespace sconce::tensor_files {

constexpr size_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // of the tensor: float4 counts pairs, so the last dimension is half of the file's
  uint64_t begin = 0, end = 0;
  // Names of the same tensor that safetensors.torch.save_model() left out: {"left out": "kept"} in "__metadata__".
  // Only for a parsed header; never the name of another entry.
  std::vector<std::string> tied = {};
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the file's order
  std::map<std::string, std::string> metadata;
};

// `json` without the length. Checks everything, also against `data_bytes` (nullopt if the end of the data is not known
// yet). `where` names the file in errors.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::optional<uint64_t> data_bytes,
                                           std::string_view where);
// The header's length, from the start of a file of `file_bytes` (nullopt: not known yet). kCorruptPackage if the file
// ends within its header or the header is too long.
uint64_t safetensors_header_bytes(std::span<const std::byte> start, std::optional<uint64_t> file_bytes,
                                  std::string_view where);
// Sorts entries by their data; an empty entry precedes one that starts at the same offset.
void sort_by_offset(SafetensorsHeader& header);
// With the length in front; padded to a multiple of 8.
std::string make_safetensors_header(const SafetensorsHeader& header, std::string_view where);

}  // namespace sconce::tensor_files
