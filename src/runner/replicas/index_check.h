// IndexCheck: checks integer inputs that a model uses as indices, before it sees them. Immutable and thread-safe.
//
// What is an index, and its bounds, stands in the package's metadata, written by sconce.export from the exported graph
// (python/sconce/_index_bounds.py): key "sconce_index_bounds",
//   {"version": 1, "bounds": [{"input": 0, "low": -100, "high": 99}]}
// An index out of bounds makes generated code fail anyway; on a GPU its device assertion ends the process's use of the
// device. Another version says nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sconce/package.h"
#include "sconce/tensor.h"

namespace sconce::runner {

class IndexCheck {
 public:
  IndexCheck() = default;
  // kCorruptPackage for metadata of version 1 that is not as above, or names an input that is not there.
  IndexCheck(const ModelSpec& spec, bool on);
  bool empty() const noexcept { return bounds_.empty(); }
  // Whether of_device() would look at any.
  bool any_on_device(std::span<const Tensor> inputs) const noexcept;
  // inputs: of the model's count. kInvalidArgument names the input, the first index out of bounds, its place and the
  // bounds. Tensors in host memory are read where they are, of integer dtypes and any strides; others are left alone.
  // Allocates only if it throws.
  void of_host(std::span<const Tensor> inputs) const;
  // The same for tensors on a device, which it fetches in the order of the calling thread's stream; waits for it.
  void of_device(std::span<const Tensor> inputs) const;

 private:
  struct Bound {
    size_t input;
    int64_t low, high;
    std::string label;  // "input 0 (ids)"
  };
  static void check(const Bound& bound, const Tensor& tensor);

  std::vector<Bound> bounds_;
};

}  // namespace sconce::runner
