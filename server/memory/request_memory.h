// Memory that a connection's requests are read into, reused from request to request.
//
// Blocks are Storages, so that tensors over them need no copy and no allocation, and so that a tensor that outlives its
// request (an output that is a view of an input, kept by the model) keeps its bytes: such a block is given up and
// replaced. Bytes count in a budget, where there is one, until the last that holds them lets go. Confined to the
// connection's thread, but for the release of the last tensor.
#pragma once

#include <cstddef>
#include <vector>

#include "sconce/tensor.h"

namespace sconce::server {

class RequestBudget;

constexpr size_t kTensorAlignment = 64;

// One block of bytes, aligned to kTensorAlignment.
class StorageBlock {
 public:
  explicit StorageBlock(RequestBudget* budget = nullptr) noexcept : budget_(budget) {}

  // At least `bytes`, content undefined, nobody else looking at it. kOutOfMemory, and the budget's errors.
  void prepare(size_t bytes);
  // At least `bytes`, the first `keep` of them unchanged.
  void grow(size_t bytes, size_t keep);
  // Exactly `bytes`, if that is more than there is now.
  void grow_to(size_t bytes, size_t keep);
  void release() noexcept {
    storage_ = {};
    capacity_ = 0;
  }

  const StoragePtr& storage() const noexcept { return storage_; }
  std::byte* data() const noexcept { return static_cast<std::byte*>(storage_ ? storage_->data() : nullptr); }
  size_t capacity() const noexcept { return capacity_; }

 private:
  RequestBudget* budget_;
  StoragePtr storage_;
  size_t capacity_ = 0;
};

// The body of a request. Its bytes from `aligned_at` on start at a multiple of kTensorAlignment.
class BodyBuffer {
 public:
  explicit BodyBuffer(RequestBudget* budget = nullptr) noexcept : block_(budget) {}

  // For a body of so many bytes. Takes memory for the first of them: what was announced need not come.
  void prepare(size_t bytes, size_t aligned_at);
  // Room behind end() for some of the bytes that are to come, of `all` that the body has in the end.
  size_t make_room(size_t all);
  void append(const char* data, size_t bytes);  // grows as needed
  void commit(size_t bytes) noexcept { size_ += bytes; }

  std::byte* begin() const noexcept { return block_.data() + start_; }
  std::byte* end() const noexcept { return begin() + size_; }
  size_t size() const noexcept { return size_; }
  const StoragePtr& storage() const noexcept { return block_.storage(); }
  size_t capacity() const noexcept { return block_.capacity(); }
  // Frees the block if it is larger than `keep`.
  void trim(size_t keep) noexcept;

 private:
  StorageBlock block_;
  size_t start_ = 0;
  size_t size_ = 0;
};

// Tensors made for a request: those read from JSON, copies for alignment or other strides. Bump allocation over blocks;
// after a request that needed several blocks, the next one gets a single block of their size.
class TensorScratch {
 public:
  struct Piece {
    StoragePtr storage;
    std::byte* data = nullptr;
    size_t offset = 0;  // bytes into the storage; a multiple of kTensorAlignment
    size_t bytes = 0;
  };
  explicit TensorScratch(RequestBudget* budget = nullptr) noexcept : budget_(budget) {}

  Piece allocate(size_t bytes);
  // The last piece, with room for more bytes; its content is kept.
  Piece grow(const Piece& last, size_t bytes);
  void reset() noexcept;
  void trim(size_t keep) noexcept;
  size_t capacity() const noexcept { return blocks_.empty() ? 0 : blocks_.back().capacity(); }

  // A new contiguous tensor; elements are not set.
  Tensor tensor(IntSpan sizes, DType dtype);
  // A tensor over bytes of `owner`, with a storage of its own that begins at `data`: a model may ask for the offset and
  // the size of an input's storage, and PyTorch's operators refuse some offsets (view_as_complex, view.dtype).
  Tensor over(const StoragePtr& owner, std::byte* data, DType dtype, IntSpan sizes, IntSpan strides);

 private:
  RequestBudget* budget_;
  std::vector<StorageBlock> blocks_;
  std::vector<StoragePtr> views_;  // storages that over() made; those behind used_views_ view nothing
  size_t used_views_ = 0;
  size_t used_ = 0;    // of the last block
  size_t wanted_ = 0;  // bytes of all blocks of the last request, if there were several
};

// Copies the elements of a CPU tensor, in row-major order, to contiguous memory; and back into any strides.
void copy_to_contiguous(const Tensor& from, std::byte* to) noexcept;
void copy_from_contiguous(const std::byte* from, const Tensor& to) noexcept;

}  // namespace sconce::server
