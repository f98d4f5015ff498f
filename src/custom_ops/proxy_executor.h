// ProxyExecutor: makes the operator calls that a package's code requests by number
// (aoti_torch_proxy_executor_call_function). One per container, used by one thread at a time.
//
// It reuses the values of a call in the next one, so that only the operator itself allocates.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/aoti_abi/abi_types.h"
#include "src/custom_ops/extern_nodes.h"

namespace sconce::custom_ops {

class ProxyExecutor {
 public:
  explicit ProxyExecutor(std::shared_ptr<const ExternNodes> nodes);

  // tensors: the node's tensor arguments, then handles (mostly of undefined tensors) that receive the results. Throws
  // kModelFailed for wrong counts, or for an integer result that differs from the value that the code was compiled
  // for. Passes on the operator's exceptions.
  void call(int64_t node, std::span<const int64_t> ints, std::span<const AtenTensorHandle> tensors);
  // From now on a failed aoti_torch_proxy_executor_call_function() keeps its error and then throws kModelFailed
  // instead of returning 1. Code that torch 2.11 generated ignores the return code and would continue with results
  // that were never written: on a GPU, its kernels would use them as addresses or indices, and the process would lose
  // the device.
  void leave_run_on_failure() noexcept { leaves_run_ = true; }
  bool leaves_run() const noexcept { return leaves_run_; }
  // For messages, like "aten::mm".
  const char* target(int64_t node) const noexcept;

  AOTIProxyExecutorHandle handle() noexcept { return reinterpret_cast<AOTIProxyExecutorHandle>(this); }

 private:
  struct Call {
    std::vector<Value> arguments, results;
  };
  std::shared_ptr<const ExternNodes> nodes_;
  std::vector<Call> calls_;
  bool leaves_run_ = false;
};

}  // namespace sconce::custom_ops
