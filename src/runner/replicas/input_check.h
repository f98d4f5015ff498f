// InputCheck: checks what the model assumes of its inputs before it sees them. Immutable and thread-safe.
//
// Always checks count, dtype, device and rank; with `full`, also fixed sizes, the relations of all others
// (sconce/sizes/size_relations.h) and strides. Strides of dimensions of size 1 and of empty tensors are ignored.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sconce/package.h"
#include "sconce/sizes/size_relations.h"
#include "sconce/tensor.h"

namespace sconce::runner {

class InputCheck {
 public:
  // least_ranks: by input, for those of unknown shape. bounds: accesses that sizes decide.
  InputCheck(const std::vector<TensorSpec>& inputs, Device device, bool full, const std::vector<int>& least_ranks = {},
             std::span<const AccessBound> bounds = {});
  // kInvalidArgument names the input, what was expected and what came; kUnsupported if the package does not say what
  // sizes go together. Allocates only if it throws, or if more than 64 sizes vary.
  void operator()(std::span<const Tensor> inputs) const;
  bool full() const noexcept { return full_; }

 private:
  struct CheckedDim {
    int64_t fixed;   // -1: the size varies
    int64_t least;   // recorded
    int64_t stride;  // -1: not known
  };
  struct Input {
    std::string name;
    std::optional<DType> dtype;
    bool has_shape;
    int least_rank;
    bool row_major;  // assume unknown strides to be those of a contiguous tensor
    std::vector<CheckedDim> dims;
  };
  void check_fixed(const Tensor& tensor, size_t i) const;
  void check_strides(const Tensor& tensor, size_t i) const;
  void check_relations(std::span<const Tensor> inputs) const;
  std::string label(size_t i) const;

  std::vector<Input> inputs_;
  SizeRelations relations_;
  Device device_;
  bool full_;
};

}  // namespace sconce::runner
