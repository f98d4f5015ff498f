#include "server/support/memory/request_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "sconce/check.h"
#include "server/support/memory/request_budget.h"

namespace sconce::server {
namespace {

constexpr size_t kSmallestBlock = 16 * 1024;
// Initial memory of a body, before any of it arrives.
constexpr size_t kFirstBytes = 64 * 1024;
// Then it grows to this multiple of the received bytes. A larger multiple means fewer copies.
constexpr size_t kGrowth = 4;

size_t round_up(size_t bytes) noexcept { return (bytes + kTensorAlignment - 1) & ~(kTensorAlignment - 1); }

// had: bytes of the storage that this one replaces, which is freed soon and no longer counted. While few connections
// are open, their smallest blocks are not counted, because a connection has few: so a full budget does not refuse
// probes, scrapes and small requests.
StoragePtr new_storage(size_t bytes, RequestBudget* budget, size_t had = 0) {
  const bool small = bytes <= kSmallestBlock;
  if (small && budget != nullptr && !budget->counts_small()) budget = nullptr;
  if (had <= kSmallestBlock) had = 0;
  StoragePtr storage = StoragePtr::adopt(new Storage(nullptr, 0, Device{}, nullptr, nullptr));
  struct Taken {
    RequestBudget* budget = nullptr;
    size_t bytes;
    ~Taken() {
      if (budget != nullptr) budget->give(bytes);
    }
  } taken{.bytes = bytes - had};
  if (budget != nullptr) small ? budget->require_small(bytes) : budget->take(bytes - had);
  taken.budget = budget;
  void* data = bytes > SIZE_MAX - kTensorAlignment ? nullptr : std::aligned_alloc(kTensorAlignment, round_up(bytes));
  SCONCE_CHECK(data != nullptr, kOutOfMemory, "no memory for a request of ", bytes, " bytes");
  storage->reset(
      data, bytes,
      [](void* p, size_t size, void* context) noexcept {
        std::free(p);
        if (context != nullptr) static_cast<RequestBudget*>(context)->give(size);
      },
      budget);
  if (budget != nullptr) budget->overdraw(had);
  taken.budget = nullptr;
  return storage;
}

// Calls copy(pointer into the strided tensor, contiguous offset in elements, count) for each run of the last dimension.
template <class F>
void for_each_row(const Tensor& tensor, F&& copy) {
  const int64_t rank = tensor.dim();
  if (tensor.numel() == 0) return;
  if (rank == 0) return copy(static_cast<std::byte*>(tensor.data()), 0, 1, 1);
  std::array<int64_t, Tensor::kMaxRank> index{};
  const int64_t length = tensor.size(rank - 1), stride = tensor.stride(rank - 1);
  const int64_t itemsize = static_cast<int64_t>(tensor.itemsize());
  std::byte* row = static_cast<std::byte*>(tensor.data());
  for (int64_t done = 0;;) {
    copy(row, done, length, stride);
    done += length;
    int64_t d = rank - 2;
    for (; d >= 0; --d) {
      auto& i = index[static_cast<size_t>(d)];
      row += tensor.stride(d) * itemsize;
      if (++i < tensor.size(d)) break;
      row -= tensor.stride(d) * itemsize * i;
      i = 0;
    }
    if (d < 0) return;
  }
}

template <class T>
void gather(const std::byte* from, int64_t stride, int64_t count, std::byte* to) noexcept {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), from + i * stride * static_cast<int64_t>(sizeof(T)),
                sizeof(T));
  }
}
template <class T>
void scatter(const std::byte* from, int64_t stride, int64_t count, std::byte* to) noexcept {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * stride * static_cast<int64_t>(sizeof(T)), from + i * static_cast<int64_t>(sizeof(T)),
                sizeof(T));
  }
}

struct Sixteen {
  uint64_t words[2];
};

template <class F>
void with_size(size_t itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Sixteen>();
  }
}

}  // namespace

void StorageBlock::prepare(size_t bytes) {
  if (storage_ && capacity_ >= bytes && storage_->references() == 1) return;
  release();
  const size_t capacity = std::max(bytes, kSmallestBlock);
  storage_ = new_storage(capacity, budget_);
  capacity_ = capacity;
}

void StorageBlock::grow(size_t bytes, size_t keep) {
  if (bytes <= capacity_) return;
  grow_to(std::max(bytes, std::max(capacity_ * 2, kSmallestBlock)), keep);
}

void StorageBlock::grow_to(size_t bytes, size_t keep) {
  if (bytes <= capacity_) return;
  StoragePtr storage = new_storage(bytes, budget_, capacity_);
  if (keep != 0) std::memcpy(storage->data(), data(), keep);
  storage_ = std::move(storage);
  capacity_ = bytes;
}

void BodyBuffer::prepare(size_t bytes, size_t aligned_at) {
  start_ = (kTensorAlignment - aligned_at % kTensorAlignment) % kTensorAlignment;
  SCONCE_CHECK(bytes <= SIZE_MAX - 2 * kTensorAlignment, kTooLarge, "request body too large: ", bytes);
  block_.prepare(start_ + std::min(bytes, kFirstBytes));
  size_ = 0;
}

size_t BodyBuffer::make_room(size_t all) {
  const size_t used = start_ + size_;
  if (used == block_.capacity()) block_.grow_to(std::min(start_ + all, used * kGrowth), used);
  return std::min(block_.capacity() - used, all - size_);
}

void BodyBuffer::append(const char* data, size_t bytes) {
  block_.grow(start_ + size_ + bytes, start_ + size_);
  if (bytes != 0) std::memcpy(end(), data, bytes);
  size_ += bytes;
}

void BodyBuffer::trim(size_t keep) noexcept {
  if (block_.capacity() > keep) block_.release();
  size_ = 0;
}

TensorScratch::Piece TensorScratch::allocate(size_t bytes) {
  const size_t room = round_up(std::max<size_t>(bytes, 1));
  if (blocks_.empty() || blocks_.back().capacity() - used_ < room) {
    StorageBlock block(budget_);
    block.prepare(std::max(room, blocks_.empty() ? wanted_ : blocks_.back().capacity()));
    blocks_.push_back(std::move(block));
    used_ = 0;
  }
  Piece piece{blocks_.back().storage(), blocks_.back().data() + used_, used_, bytes};
  used_ += room;
  return piece;
}

TensorScratch::Piece TensorScratch::grow(const Piece& last, size_t bytes) {
  if (last.storage == blocks_.back().storage() && last.offset + round_up(bytes) <= blocks_.back().capacity()) {
    used_ = last.offset + round_up(bytes);
    return {last.storage, last.data, last.offset, bytes};
  }
  Piece piece = allocate(bytes);
  std::memcpy(piece.data, last.data, last.bytes);
  return piece;
}

void TensorScratch::reset() noexcept {
  for (size_t i = 0; i < used_views_; ++i) {
    if (views_[i]->references() != 1) views_[i] = {};  // the owner of the tensor keeps its bytes
    if (views_[i]) views_[i]->reset(nullptr, 0, nullptr, nullptr);
  }
  used_views_ = 0;
  used_ = 0;
  wanted_ = 0;
  if (blocks_.size() > 1) {
    for (const StorageBlock& block : blocks_) wanted_ += block.capacity();
    blocks_.clear();
  } else if (!blocks_.empty() && blocks_.back().storage()->references() != 1) {
    wanted_ = blocks_.back().capacity();
    blocks_.clear();
  }
}

void TensorScratch::trim(size_t keep) noexcept {
  reset();
  if (!blocks_.empty() && blocks_.back().capacity() > keep) blocks_.clear();
  wanted_ = std::min(wanted_, keep);
}

Tensor TensorScratch::tensor(IntSpan sizes, DType dtype) {
  std::array<int64_t, Tensor::kMaxRank> strides;
  SCONCE_CHECK(sizes.size() <= strides.size(), kInvalidArgument, "tensor has too many dimensions: ", sizes.size());
  contiguous_strides(sizes, strides.data());
  const IntSpan stride_span{strides.data(), sizes.size()};
  const Piece piece = allocate(storage_bytes_needed(sizes, stride_span, 0, dtype_bytes(dtype)));
  return over(piece.storage, piece.data, dtype, sizes, stride_span);
}

Tensor TensorScratch::over(const StoragePtr& owner, std::byte* data, DType dtype, IntSpan sizes, IntSpan strides) {
  const size_t bytes = storage_bytes_needed(sizes, strides, 0, dtype_bytes(dtype));
  if (used_views_ == views_.size()) views_.emplace_back();
  StoragePtr& view = views_[used_views_];
  if (!view) view = StoragePtr::adopt(new Storage(nullptr, 0, Device{}, nullptr, nullptr));
  owner->retain();
  view->reset(
      data, bytes, [](void*, size_t, void* context) noexcept { static_cast<Storage*>(context)->release(); },
      owner.get());
  ++used_views_;
  return Tensor(view, dtype, sizes, strides);
}

Tensor TensorScratch::over(const StoragePtr& owner, std::byte* data, DType dtype, IntSpan sizes) {
  std::array<int64_t, Tensor::kMaxRank> strides;
  contiguous_strides(sizes, strides.data());
  return over(owner, data, dtype, sizes, {strides.data(), sizes.size()});
}

const std::byte* TensorScratch::row_major(const Tensor& tensor) {
  if (tensor.is_contiguous()) return static_cast<const std::byte*>(tensor.data());
  const Piece piece = allocate(tensor.bytes());
  copy_to_contiguous(tensor, piece.data);
  return piece.data;
}

void copy_to_contiguous(const Tensor& from, std::byte* to) noexcept {
  const size_t itemsize = from.itemsize();
  if (from.is_contiguous()) {
    if (from.bytes() != 0) std::memcpy(to, from.data(), from.bytes());
    return;
  }
  for_each_row(from, [&](const std::byte* row, int64_t done, int64_t count, int64_t stride) {
    std::byte* out = to + static_cast<size_t>(done) * itemsize;
    if (stride == 1) {
      std::memcpy(out, row, static_cast<size_t>(count) * itemsize);
    } else {
      with_size(itemsize, [&]<class T>() { gather<T>(row, stride, count, out); });
    }
  });
}

void copy_from_contiguous(const std::byte* from, const Tensor& to) noexcept {
  const size_t itemsize = to.itemsize();
  for_each_row(to, [&](std::byte* row, int64_t done, int64_t count, int64_t stride) {
    const std::byte* in = from + static_cast<size_t>(done) * itemsize;
    if (stride == 1) {
      std::memcpy(row, in, static_cast<size_t>(count) * itemsize);
    } else {
      with_size(itemsize, [&]<class T>() { scatter<T>(in, stride, count, row); });
    }
  });
}

}  // namespace sconce::server
