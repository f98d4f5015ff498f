#include "src/weights/stored_weights.h"

#include "sconce/check.h"
#include "src/tensor_files/npy_header.h"
#include "src/weights/row_major.h"

namespace sconce::weights {

void StoredWeights::add(WeightEntry entry, StoredLayout layout) {
  if (!layout.strides.empty() && is_row_major(entry.shape, layout.strides)) layout.strides.clear();
  const bool row_major = layout.strides.empty();
  WeightFile::add(std::move(entry));
  if (row_major) layout.bytes = bytes_.back();
  layouts_.push_back(std::move(layout));
}

void StoredWeights::read(size_t entry, std::span<std::byte> out) {
  const StoredLayout& layout = layouts_[entry];
  const DType dtype = entries_[entry].dtype;
  const bool row_major = layout.strides.empty();
  if (entry != current_) {
    current_ = entry;
    position_ = 0;
    whole_.clear();
    if (!row_major) {
      whole_.resize(layout.bytes);
      fetch(entry, 0, whole_);
    }
  }
  SCONCE_CHECK(out.size() % dtype_bytes(dtype) == 0 && out.size() <= bytes_[entry] - position_, kInternal,
               "weights are read beyond their end: ", entries_[entry].name);
  if (row_major)
    fetch(entry, position_, out);
  else
    gather(whole_.data(), entries_[entry].shape, layout.strides, dtype_bytes(dtype), position_ / dtype_bytes(dtype),
           out);
  if (layout.swap_bytes) tensor_files::swap_bytes(out, dtype);
  position_ += out.size();
}

}  // namespace sconce::weights
