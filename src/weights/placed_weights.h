// PlacedWeights: entries at known offsets in files or in memory.
#pragma once

#include "src/support/sha256.h"
#include "src/weights/stored_weights.h"

namespace sconce::weights {

class PlacedWeights final : public StoredWeights {
 public:
  // `sha256` is the digest of the first file, and allowed only if there is one file.
  explicit PlacedWeights(std::optional<Sha256Digest> sha256 = std::nullopt);

  size_t add_file(InputFile file);
  const InputFile& file(size_t index) const noexcept { return files_[index]; }
  // Reads the bytes before the first entry, so that reading in order also computes the first file's digest.
  std::vector<std::byte> read_header(size_t file, uint64_t offset, size_t bytes);

  // `offset`: of the first element in the file.
  void add(WeightEntry entry, StoredLayout layout, size_t file, uint64_t offset);
  // The `owner` given to keep() keeps `first` valid.
  void add(WeightEntry entry, StoredLayout layout, const std::byte* first);
  void keep(std::shared_ptr<const void> owner) { owner_ = std::move(owner); }

  // The offset of an entry's final bytes in a file; null if the entry is in memory or must be converted.
  struct FilePlace {
    const InputFile* file;
    uint64_t offset;
  };
  FilePlace place(size_t entry) const noexcept {
    const Place& place = places_[entry];
    return {place.memory || !is_plain(entry) ? nullptr : &files_[place.file], place.offset};
  }
  void check_whole() override;

 private:
  struct Place {
    size_t file;
    uint64_t offset;
    const std::byte* memory;  // null: in the file
  };
  void fetch(size_t entry, uint64_t position, std::span<std::byte> out) override;
  void read_file(size_t file, uint64_t offset, std::span<std::byte> out);

  std::vector<InputFile> files_;
  std::vector<Place> places_;
  std::shared_ptr<const void> owner_;
  std::optional<Sha256Digest> expected_;
  std::optional<Sha256> digest_;  // of the first `digested_` bytes of the first file
  uint64_t digested_ = 0;
};

}  // namespace sconce::weights
