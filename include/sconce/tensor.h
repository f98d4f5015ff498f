// Tensor: sizes, strides and offset over a Storage. A value of two cache lines; copies share the storage.
//
// Sizes and strides are in elements; strides may be zero or overlap, never negative. A default-constructed tensor is
// undefined. An opaque tensor (layout kMkldnn) has only sizes; its bytes are oneDNN-packed. Threads may use different
// objects at the same time; callers synchronise access to a shared one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "sconce/device.h"
#include "sconce/dtype.h"
#include "sconce/storage.h"

namespace sconce {

using IntSpan = std::span<const int64_t>;

enum class Layout : int8_t { kStrided = 0, kMkldnn = 3 };  // c10::Layout

class Tensor {
 public:
  static constexpr int kMaxRank = 64;
  static constexpr int kInlineRank = 5;

  Tensor() noexcept : dims_(inline_) {}
  // Takes a reference to the storage. offset is in elements. kInvalidArgument for negative sizes or strides, more than
  // kMaxRank dimensions, or an element outside the storage.
  Tensor(StoragePtr storage, DType dtype, IntSpan sizes, IntSpan strides, int64_t offset = 0,
         Layout layout = Layout::kStrided);
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&& other) noexcept;
  ~Tensor() {
    if (dims_ != inline_) delete[] dims_;
  }

  // Uninitialised memory from the calling thread's arena, 64-byte aligned. kOutOfMemory.
  static Tensor empty(IntSpan sizes, DType dtype, Device device = {});
  static Tensor empty_strided(IntSpan sizes, IntSpan strides, DType dtype, Device device = {});
  // Views bytes of the caller. `release` (may be null) is called when the last view is destroyed.
  static Tensor from_blob(void* data, IntSpan sizes, IntSpan strides, DType dtype, Device device = {},
                          Storage::Release release = nullptr, void* context = nullptr);

  bool defined() const noexcept { return static_cast<bool>(storage_); }
  int64_t dim() const noexcept { return rank_; }
  int64_t numel() const noexcept { return numel_; }
  IntSpan sizes() const noexcept { return {dims_, rank_}; }
  IntSpan strides() const noexcept { return {dims_ + rank_, rank_}; }
  int64_t size(int64_t d) const noexcept { return dims_[d]; }  // 0 <= d < dim()
  int64_t stride(int64_t d) const noexcept { return dims_[rank_ + d]; }
  DType dtype() const noexcept { return dtype_; }
  Device device() const noexcept { return device_; }
  Layout layout() const noexcept { return layout_; }
  bool is_cpu() const noexcept { return device_.type == DeviceType::kCpu; }
  size_t itemsize() const noexcept { return dtype_bytes(dtype_); }
  size_t bytes() const noexcept { return static_cast<size_t>(numel_) * itemsize(); }  // of the elements, packed

  const StoragePtr& storage() const noexcept { return storage_; }
  int64_t storage_offset() const noexcept { return offset_; }
  // The first element, null if the storage is empty. Opaque tensors: the packed bytes.
  void* data() const noexcept {
    return storage_ && storage_->data()
               ? static_cast<std::byte*>(storage_->data()) + offset_ * static_cast<int64_t>(itemsize())
               : nullptr;
  }
  template <class T>
  T* data_as() const noexcept {
    return static_cast<T*>(data());
  }

  // Row-major without gaps. Dimensions of size 1 may have any stride; empty tensors are contiguous.
  bool is_contiguous() const noexcept;
  // No overlap, no gaps, any order of dimensions (at::Tensor::is_non_overlapping_and_dense).
  bool is_dense() const noexcept;

  // Another view of the same storage. offset counts from the storage's start, in elements of the new dtype.
  Tensor as_strided(IntSpan sizes, IntSpan strides, int64_t offset) const;
  Tensor view_as(DType dtype, IntSpan sizes, IntSpan strides, int64_t offset) const;

 private:
  void set_dims(IntSpan sizes, IntSpan strides);

  StoragePtr storage_;
  int64_t offset_ = 0;
  int64_t numel_ = 0;
  int64_t* dims_;  // sizes, then strides; points to inline_ up to kInlineRank
  uint8_t rank_ = 0;
  DType dtype_ = DType::kFloat32;
  Device device_;
  Layout layout_ = Layout::kStrided;
  int64_t inline_[2 * kInlineRank];
};

// Row-major strides, last one 1; a size of 0 counts as 1. out has room for sizes.size() elements.
void contiguous_strides(IntSpan sizes, int64_t* out) noexcept;
// Bytes of the storage, from element 0, that the view can reach; 0 if any size is 0. kInvalidArgument on overflow.
size_t storage_bytes_needed(IntSpan sizes, IntSpan strides, int64_t offset, size_t itemsize);
// "float32 [2, 3] strides [3, 1]"
std::string describe(const Tensor& tensor);
std::string to_string(IntSpan values);

}  // namespace sconce
