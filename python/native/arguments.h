// Arguments: the objects of one call as tensors. Memory is used where it lies, if the model can read it there; else the
// call gets a copy, and what the model writes to that goes back into the caller's array.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sconce/package.h"
#include "sconce/tensor.h"

namespace sconce::python {

namespace nb = nanobind;

// What an input must be, as far as conversion cares; Model::run checks the rest.
struct InputRule {
  InputRule(const TensorSpec& spec, std::string path);

  std::string path;  // "args[0]['image']"
  std::optional<DType> dtype;
  bool may_be_written = true;
  bool row_major = false;        // strides are recorded, and row-major
  std::vector<int64_t> strides;  // those recorded, if all are and they are not row-major
  // A run wrote it. Then read-only arrays are refused before a run.
  mutable std::atomic<bool> was_written{false};

  InputRule(InputRule&& other) noexcept;
};

// The objects that were copied for a call.
class Arguments {
 public:
  // Makes the tensor of an object: an array, a tensor of another library, a number. kInvalidArgument, kUnsupported.
  Tensor take(nb::handle object, const InputRule& rule);
  // After the run: writes back what the model wrote to copies. kInvalidArgument if an array is read-only.
  void give_back();
  // After the run: copies outputs that are read-only memory of the caller's, so that results can be written.
  void separate(std::span<Tensor> outputs) const;
  void clear() noexcept {
    copies_.clear();
    read_only_.clear();
  }

 private:
  struct Copy {
    nb::object array;  // the caller's
    Tensor tensor;
    const InputRule* rule;
    bool writable;
  };
  Tensor take_array(nb::handle array, const InputRule& rule);
  Tensor take_foreign(nb::handle object, const InputRule& rule);
  Tensor viewed(std::byte* data, IntSpan sizes, const int64_t* strides, DType dtype, Device device, nb::handle owner,
                bool writable);
  Tensor copied(nb::handle array, IntSpan sizes, DType dtype, const InputRule& rule, bool writable);

  std::vector<Copy> copies_;
  std::vector<const Storage*> read_only_;  // of inputs that are used where they are
};

// Any object as a tensor on the host, row-major or not, for weights. Copies only what no tensor can view.
Tensor host_tensor(nb::handle object, const std::string& what, std::optional<DType> scalar_dtype);

}  // namespace sconce::python
