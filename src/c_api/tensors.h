// DLPack tensors of callers as Tensors, and Tensors as DLPack tensors for callers.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sconce.h"
#include "sconce/device.h"
#include "sconce/dtype.h"
#include "sconce/tensor.h"

namespace sconce::c_api {

sconce_dtype dlpack_of(DType dtype) noexcept;
// kInvalidArgument names `what` if no element type of Sconce is that.
DType dtype_of(sconce_dtype dtype, const std::string& what);

// A view of the caller's bytes. kInvalidArgument for everything that it cannot be.
Tensor view_of(const sconce_tensor* tensor, const std::string& what);

// The tensors of a call; a few of them take no memory.
class Tensors {
 public:
  explicit Tensors(size_t count) : many_(count > kFew ? count : 0), count_(count) {}
  std::span<Tensor> all() noexcept { return {many_.empty() ? few_.data() : many_.data(), count_}; }
  std::span<const Tensor> all() const noexcept { return {many_.empty() ? few_.data() : many_.data(), count_}; }

 private:
  static constexpr size_t kFew = 4;
  std::array<Tensor, kFew> few_;
  std::vector<Tensor> many_;
  size_t count_;
};

// "input 2: the tensor is null", and the errors of view_of().
Tensors views_of(const sconce_tensor* const* inputs, size_t count);

// Hands outputs to the caller. One that shares memory with an input is copied. All or none.
void give(std::span<Tensor> outputs, std::span<const Tensor> inputs, sconce_managed_tensor** to);

}  // namespace sconce::c_api
