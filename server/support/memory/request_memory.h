// Memory for reading a connection's requests, reused from request to request.
//
// Blocks are Storages, so tensors over them need no copy and no allocation. If a tensor outlives its request (an output
// that is a view of an input and that the model keeps), it keeps its block, and the connection allocates a new one.
// Bytes count in a budget, if there is one, until the last owner releases them. Used by one thread at a time,
// except that any thread may release the last tensor.
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

  // Makes room for at least `bytes` bytes, with undefined content and no other user. kOutOfMemory, and the budget's
  // errors.
  void prepare(size_t bytes);
  // Makes room for at least `bytes` bytes and preserves the first `keep`.
  void grow(size_t bytes, size_t keep);
  // Makes room for exactly `bytes` bytes, if there is less now.
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

// The body of a request. The address of byte `aligned_at` is aligned to kTensorAlignment.
class BodyBuffer {
 public:
  explicit BodyBuffer(RequestBudget* budget = nullptr) noexcept : block_(budget) {}

  // Prepares for a body of `bytes` bytes. Allocates memory only for the first of them, because announced bytes may
  // never arrive.
  void prepare(size_t bytes, size_t aligned_at);
  // Makes room after end() for some of the next bytes; the whole body has `all`.
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

// Tensors made for a request: parsed from JSON, or copied for alignment or strides. Allocates in order from blocks;
// after a request that needed several blocks, the next request gets a single block of their total size.
class TensorScratch {
 public:
  struct Piece {
    StoragePtr storage;
    std::byte* data = nullptr;
    size_t offset = 0;  // byte offset in the storage; a multiple of kTensorAlignment
    size_t bytes = 0;
  };
  explicit TensorScratch(RequestBudget* budget = nullptr) noexcept : budget_(budget) {}

  Piece allocate(size_t bytes);
  // Enlarges the last piece and preserves its content.
  Piece grow(const Piece& last, size_t bytes);
  void reset() noexcept;
  void trim(size_t keep) noexcept;
  size_t capacity() const noexcept { return blocks_.empty() ? 0 : blocks_.back().capacity(); }

  // A new contiguous tensor with undefined elements.
  Tensor tensor(IntSpan sizes, DType dtype);
  // A tensor over bytes of `owner`, with its own storage that starts at `data`, because a model may query the offset
  // and size of an input's storage, and PyTorch's operators refuse some offsets (view_as_complex, view.dtype).
  Tensor over(const StoragePtr& owner, std::byte* data, DType dtype, IntSpan sizes, IntSpan strides);
  Tensor over(const StoragePtr& owner, std::byte* data, DType dtype, IntSpan sizes);  // contiguous
  // The elements of a CPU tensor in row-major order: its own memory, or a copy.
  const std::byte* row_major(const Tensor& tensor);

 private:
  RequestBudget* budget_;
  std::vector<StorageBlock> blocks_;
  std::vector<StoragePtr> views_;  // storages that over() made; those from used_views_ on are free
  size_t used_views_ = 0;
  size_t used_ = 0;    // of the last block
  size_t wanted_ = 0;  // total of the last request's blocks, if there were several
};

// Copies the elements of a CPU tensor in row-major order to contiguous memory, and back into any strides.
void copy_to_contiguous(const Tensor& from, std::byte* to) noexcept;
void copy_from_contiguous(const std::byte* from, const Tensor& to) noexcept;

}  // namespace sconce::server
