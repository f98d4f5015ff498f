// Converts callers' DLPack tensors to Tensors, and Tensors to DLPack tensors.
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
// kInvalidArgument names `what` if Sconce has no such element type.
DType dtype_of(sconce_dtype dtype, const std::string& what);

// A view of the caller's bytes. kInvalidArgument for a tensor that cannot be viewed.
Tensor view_of(const sconce_tensor* tensor, const std::string& what);

// The tensors of a call. A small number needs no allocation.
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

// Throws "input 2: the tensor is null", and the errors of view_of().
Tensors views_of(const sconce_tensor* const* inputs, size_t count);

// Passes outputs to the caller: all or none. Copies an output that shares memory with an input.
void give(std::span<Tensor> outputs, std::span<const Tensor> inputs, sconce_managed_tensor** to);

}  // namespace sconce::c_api
