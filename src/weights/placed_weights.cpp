#include "src/weights/placed_weights.h"

#include <cstring>

#include "sconce/check.h"

namespace sconce::weights {

PlacedWeights::PlacedWeights(std::optional<Sha256Digest> sha256) : expected_(sha256) {
  if (expected_) digest_.emplace();
}

size_t PlacedWeights::add_file(InputFile file) {
  files_.push_back(std::move(file));
  return files_.size() - 1;
}

std::vector<std::byte> PlacedWeights::read_header(size_t file, uint64_t offset, size_t bytes) {
  std::vector<std::byte> header(bytes);
  read_file(file, offset, header);
  return header;
}

void PlacedWeights::add(WeightEntry entry, StoredLayout layout, size_t file, uint64_t offset) {
  StoredWeights::add(std::move(entry), std::move(layout));
  places_.push_back({file, offset, nullptr});
}

void PlacedWeights::add(WeightEntry entry, StoredLayout layout, const std::byte* first) {
  StoredWeights::add(std::move(entry), std::move(layout));
  places_.push_back({0, 0, first});
}

void PlacedWeights::fetch(size_t entry, uint64_t position, std::span<std::byte> out) {
  if (out.empty()) return;
  const Place& place = places_[entry];
  if (place.memory)
    std::memcpy(out.data(), place.memory + position, out.size());
  else
    read_file(place.file, place.offset + position, out);
}

void PlacedWeights::read_file(size_t file, uint64_t offset, std::span<std::byte> out) {
  files_[file].read(offset, out);
  if (digest_ && file == 0 && offset == digested_) {
    digest_->update(out);
    digested_ += out.size();
  }
}

void PlacedWeights::check_whole() {
  if (expected_) {
    const InputFile& file = files_.front();
    // The file was read out of order or with gaps, so read it again from the start.
    check_digest(digested_ == file.size() ? digest_->finish() : file.sha256(), *expected_, file.path().string());
  }
  for (const InputFile& file : files_) file.check_unchanged();
}

}  // namespace sconce::weights
