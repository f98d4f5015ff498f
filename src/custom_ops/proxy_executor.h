// ProxyExecutor: makes the operator calls that a package's code asks for by number
// (aoti_torch_proxy_executor_call_function). One per container, used by one thread at a time.
//
// The values of a call live in the executor between calls, so that a call allocates nothing but what the operator does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/custom_ops/extern_nodes.h"
#include "src/shim/abi_types.h"

namespace sconce::custom_ops {

class ProxyExecutor {
 public:
  explicit ProxyExecutor(std::shared_ptr<const ExternNodes> nodes);

  // tensors: what the node's arguments need, then handles of tensors (undefined ones, mostly) that are assigned the
  // results. kModelFailed where the counts are not those of the node or an integer result is not what the code was
  // compiled for; else what the operator throws.
  void call(int64_t node, std::span<const int64_t> ints, std::span<const AtenTensorHandle> tensors);
  // For messages: "aten::mm".
  const char* target(int64_t node) const noexcept;

  AOTIProxyExecutorHandle handle() noexcept { return reinterpret_cast<AOTIProxyExecutorHandle>(this); }

 private:
  struct Call {
    std::vector<Value> arguments, results;
  };
  std::shared_ptr<const ExternNodes> nodes_;
  std::vector<Call> calls_;
};

}  // namespace sconce::custom_ops
