// StoredWeights: a WeightFile whose entries have any strides and byte order. Row-major entries are read directly to
// their final memory; other entries pass one at a time through a buffer of their size.
#pragma once

#include <memory>

#include "sconce/weight_sources.h"
#include "src/weights/input_file.h"

namespace sconce::weights {

// How an entry is stored, from its first element on.
struct StoredLayout {
  std::vector<int64_t> strides;  // empty: row-major
  uint64_t bytes = 0;            // range of bytes that contains the elements
  bool swap_bytes = false;
};

class StoredWeights : public WeightFile {
 public:
  void read(size_t entry, std::span<std::byte> out) final;

 protected:
  // strides may be row-major; layout.bytes is then set from the entry.
  void add(WeightEntry entry, StoredLayout layout);
  uint64_t stored_bytes(size_t entry) const noexcept { return layouts_[entry].bytes; }
  // Row-major and little endian.
  bool is_plain(size_t entry) const noexcept { return layouts_[entry].strides.empty() && !layouts_[entry].swap_bytes; }
  // Reads the stored bytes of an entry: from 0 on, without gaps.
  virtual void fetch(size_t entry, uint64_t position, std::span<std::byte> out) = 0;

 private:
  std::vector<StoredLayout> layouts_;
  size_t current_ = SIZE_MAX;
  uint64_t position_ = 0;         // bytes of the current entry already returned
  std::vector<std::byte> whole_;  // the current entry, if it is not row-major
};

std::unique_ptr<WeightFile> open_safetensors(InputFile file, const FileOptions& options);
std::unique_ptr<WeightFile> open_npy(InputFile file, const FileOptions& options);
std::unique_ptr<WeightFile> open_npz(InputFile file, const FileOptions& options);
std::unique_ptr<WeightFile> open_blob(InputFile file, const FileOptions& options);
std::unique_ptr<WeightFile> open_package(const std::filesystem::path& path, const FileOptions& options);

// The size of a raw blob of these constants.
uint64_t blob_bytes(std::span<const ConstantSpec> constants);
// A stored constant as an entry of an update. kUnsupported for constants that files cannot hold: packed constants,
// unknown dtypes.
WeightEntry entry_of(const ConstantSpec& constant, const std::string& where);

}  // namespace sconce::weights
