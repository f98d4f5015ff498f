// Container: AOTInductor's object for one replica, with one model instance and constants that the caller provides.
//
// Used by one thread at a time. AOTInductor's own locks, buffers and swaps are never used: new weights mean a new
// container of the same module.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sconce/tensor.h"
#include "src/cpu/matmul/weight_only.h"
#include "src/custom_ops/proxy_executor.h"
#include "src/loader/module.h"

namespace sconce::loader {

// Provides a container's stored constants (without folded ones), in the container's order.
class ConstantSource {
 public:
  virtual ~ConstantSource() = default;
  // index counts stored constants. `packaged` has the constant's dtype, sizes and strides, on the CPU, over the
  // archive's bytes; if those could not be traced, over bytes that live only while the container is made. The
  // container needs the constant on `device`.
  virtual Tensor constant(size_t index, const Tensor& packaged, bool traced, Device device) = 0;
};

struct ContainerConstant {
  std::string name, fqn;
  bool folded = false;
  int32_t type = 0;
  int32_t dtype = 0;
  size_t data_size = 0;  // 0 if the package does not say (torch 2.6, 2.7)
};

class Container {
 public:
  Container(std::shared_ptr<const Module> module, Device device, ConstantSource& source);
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  // The number of constants requested from the source: 0 if the package keeps its weights outside.
  size_t constants_given() const noexcept { return constants_given_; }
  std::vector<ContainerConstant> constants() const;
  size_t num_inputs() const noexcept { return num_inputs_; }
  size_t num_outputs() const noexcept { return num_outputs_; }
  // Completes a spec: names of inputs and outputs, the call spec if no source has it, and each input's leaf in it.
  // kCorruptPackage if the call spec is invalid.
  void complete(ModelSpec& spec) const;

  // Whether a run leaves the stream to its caller, so that it may be recorded as a device graph.
  bool can_be_recorded() const noexcept { return module_->api().run_single_threaded != nullptr; }

  // Uses the tensors in place, by the container's own names. For packages that do not load weights themselves.
  void set_constants(std::span<const std::pair<std::string, Tensor>> constants);
  // Computes folded constants from the stored ones. kModelFailed.
  void fold(void* stream = nullptr);

  // inputs.size() == num_inputs(), outputs.size() == num_outputs(). Outputs that the model returns as None are
  // undefined. kModelFailed with the model's own message, or the code of the operator that failed; the container stays
  // usable. stream: the device's, null on the CPU.
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs, void* stream = nullptr);

 private:
  AOTIProxyExecutorHandle executor() noexcept { return executor_ ? executor_->handle() : nullptr; }
  void check(RuntimeError rc, const char* what, class ErrorCapture& capture) const;

  std::shared_ptr<const Module> module_;
  const char* const reported_;  // its name in fault reports
  Int4Packing packing_;
  struct Destroy {
    RuntimeError (*destroy)(ContainerHandle);
    void operator()(ContainerHandle handle) const noexcept { destroy(handle); }
  };
  // Handles from set_constants. Some containers keep them, so they are destroyed last.
  std::vector<std::unique_ptr<Tensor>> user_managed_;
  std::unique_ptr<AOTInductorModelContainerOpaque, Destroy> handle_;
  std::unique_ptr<custom_ops::ProxyExecutor> executor_;  // null if the code calls nothing by name
  size_t num_inputs_ = 0, num_outputs_ = 0, constants_given_ = 0;
  std::vector<AtenTensorHandle> input_handles_, output_handles_;
};

}  // namespace sconce::loader
