// Argument types of kernels beyond Tensor: lists in the form of the C ABI, without a copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

// Tensor[]: borrowed pointers.
class TensorList {
 public:
  TensorList(const Tensor* const* items, size_t size) noexcept : items_(items), size_(size) {}
  size_t size() const noexcept { return size_; }
  const Tensor& operator[](size_t i) const noexcept { return *items_[i]; }

 private:
  const Tensor* const* items_;
  size_t size_;
};

// Tensor?[]: null or undefined elements are absent.
class OptTensorList {
 public:
  OptTensorList(const Tensor* const* const* items, size_t size) noexcept : items_(items), size_(size) {}
  size_t size() const noexcept { return size_; }
  const Tensor* operator[](size_t i) const noexcept {
    return items_[i] && *items_[i] && (*items_[i])->defined() ? *items_[i] : nullptr;
  }

 private:
  const Tensor* const* const* items_;
  size_t size_;
};

// Options of operators that make tensors. OptEnum: a layout, a memory format, pin_memory.
using OptType = std::optional<DType>;
using OptEnum = std::optional<int32_t>;
using OptDevice = std::optional<Device>;

class Generator;  // src/cpu/random/random.h: PyTorch's CPU generator

}  // namespace sconce
