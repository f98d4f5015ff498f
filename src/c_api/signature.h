// A model's signature in the structs of the C API.
#pragma once

#include <string>
#include <vector>

#include "sconce.h"
#include "sconce/package.h"

namespace sconce::c_api {

// A ModelSpec in the structs of the C API. The spec must outlive it. Immutable.
class Signature {
 public:
  explicit Signature(const ModelSpec& spec) : Signature(spec, spec.constants) {}
  Signature(const ModelSpec& spec, std::vector<ConstantSpec> constants);
  Signature(const Signature&) = delete;
  Signature& operator=(const Signature&) = delete;

  // kInvalidArgument if the index is out of range.
  sconce_tensor_info input(size_t index) const;
  sconce_tensor_info output(size_t index) const;
  sconce_constant_info constant(size_t index) const;
  // The members of an info that are known without loading.
  sconce_model_info info() const noexcept;

 private:
  struct Shown {
    sconce_tensor_info info{};
    std::string device;
    std::vector<sconce_dim> dims;
    std::vector<int64_t> strides;
  };
  static std::vector<Shown> show(const std::vector<TensorSpec>& tensors);

  const ModelSpec& spec_;
  std::vector<Shown> inputs_, outputs_;
  std::vector<ConstantSpec> constants_;
  std::vector<std::string> devices_;  // of the constants
};

}  // namespace sconce::c_api
