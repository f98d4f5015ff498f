#include <algorithm>
#include <memory>
#include <set>

#include "sconce/check.h"
#include "src/support/excerpt.h"
#include "src/tensor_files/safetensors_header.h"
#include "src/weights/placed_weights.h"

namespace sconce {
namespace {

void add_entries(weights::PlacedWeights& weights, weights::InputFile input) {
  using namespace tensor_files;
  const std::string where = input.path().string();
  const uint64_t size = input.size();
  const size_t file = weights.add_file(std::move(input));
  const std::vector<std::byte> start = weights.read_header(file, 0, std::min<size_t>(size, sizeof(uint64_t)));
  const uint64_t length = safetensors_header_bytes(start, size, where);
  const std::vector<std::byte> json = weights.read_header(file, start.size(), length);
  const uint64_t data = start.size() + length;
  SafetensorsHeader header =
      parse_safetensors_header({reinterpret_cast<const char*>(json.data()), json.size()}, size - data, where);
  sort_by_offset(header);
  for (SafetensorsEntry& entry : header.entries) {
    const uint64_t offset = data + entry.begin;
    weights.add({std::move(entry.name), entry.dtype, std::move(entry.shape), std::move(entry.tied)}, {}, file, offset);
  }
}

}  // namespace

std::unique_ptr<WeightFile> weights::open_safetensors(InputFile input, const FileOptions& options) {
  auto weights = std::make_unique<PlacedWeights>(options.sha256);
  add_entries(*weights, std::move(input));
  return weights;
}

std::unique_ptr<WeightFile> WeightFile::open_shards(std::span<const std::filesystem::path> paths) {
  auto weights = std::make_unique<weights::PlacedWeights>();
  for (const std::filesystem::path& path : paths) add_entries(*weights, weights::InputFile(path));
  std::set<std::string_view> names;
  for (const WeightEntry& entry : weights->entries())
    SCONCE_CHECK(names.insert(entry.name).second, kCorruptPackage, "two files have the tensor '", excerpt(entry.name),
                 "'");
  return weights;
}

}  // namespace sconce
