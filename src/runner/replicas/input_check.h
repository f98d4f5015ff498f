// InputCheck: checks what the model assumes of its inputs before it sees them. Immutable and thread-safe.
//
// Always checks count, dtype, device and rank; with `full`, also fixed sizes, ranges, equal symbols and strides. A
// recorded minimum of 2 accepts 1: torch.export writes 2 for a dimension of 1.. (0/1 specialisation), and the code
// works for 1. Strides of dimensions of size 1 and of empty tensors are ignored.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sconce/package.h"
#include "sconce/tensor.h"

namespace sconce::runner {

class InputCheck {
 public:
  // least_ranks: by input, for those of unknown shape.
  InputCheck(const std::vector<TensorSpec>& inputs, Device device, bool full, const std::vector<int>& least_ranks = {});
  // kInvalidArgument names the input, what was expected and what came. Allocates only if it throws.
  void operator()(std::span<const Tensor> inputs) const;
  bool full() const noexcept { return full_; }

 private:
  struct Symbol {  // the first place where it occurs: dimension `dim` of input `input`
    int32_t input, dim;
  };
  struct CheckedDim {
    int64_t min, max;
    int64_t stride;  // -1: not known
    Symbol same_as;  // input -1: none
  };
  struct Input {
    std::string name;
    std::optional<DType> dtype;
    bool has_shape;
    int least_rank;
    bool row_major;  // assume unknown strides to be those of a contiguous tensor
    std::vector<CheckedDim> dims;
  };
  void check_shape(std::span<const Tensor> inputs, size_t i) const;
  std::string label(size_t i) const;

  std::vector<Input> inputs_;
  Device device_;
  bool full_;
};

}  // namespace sconce::runner
