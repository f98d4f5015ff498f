#include "src/custom_ops/proxy_executor.h"

#include "sconce/check.h"
#include "src/aoti_abi/guard.h"

namespace sconce::custom_ops {
namespace {

// Assigns the result to the handle. The result may be the tensor of that handle.
void assign(AtenTensorHandle handle, Value& result) {
  SCONCE_CHECK(handle, kModelFailed, "the handle for a result is null");
  Tensor* const target = aoti_abi::tensor_of(handle);
  if (result.is_none()) return;
  if (Tensor* held = result.get_if<Tensor>())
    *target = std::move(*held);
  else if (Tensor& borrowed = result.tensor(); &borrowed != target)
    *target = borrowed;
}

// Releases tensors after a call, so that none is held until the next one.
struct Release {
  std::span<Value> results;
  ~Release() {
    for (Value& result : results) result = Value();
  }
};

}  // namespace

ProxyExecutor::ProxyExecutor(std::shared_ptr<const ExternNodes> nodes) : nodes_(std::move(nodes)) {
  for (const ExternNode& node : nodes_->nodes()) {
    Call& call = calls_.emplace_back();
    call.arguments = node.arguments;
    if (node.op) call.results.resize(node.op->schema().results.size());
  }
}

const char* ProxyExecutor::target(int64_t node) const noexcept {
  return node >= 0 && static_cast<size_t>(node) < calls_.size()
             ? nodes_->nodes()[static_cast<size_t>(node)].target.c_str()
             : "aoti_torch_proxy_executor_call_function";
}

void ProxyExecutor::call(int64_t index, std::span<const int64_t> ints, std::span<const AtenTensorHandle> tensors) {
  SCONCE_CHECK(index >= 0 && static_cast<size_t>(index) < calls_.size(), kModelFailed, "there is no operator call ",
               index, " of ", calls_.size());
  const ExternNode& node = nodes_->nodes()[static_cast<size_t>(index)];
  Call& call = calls_[static_cast<size_t>(index)];
  SCONCE_CHECK(node.op, kUnsupported, "there is no operator of that name");
  SCONCE_CHECK(ints.size() == node.ints && tensors.size() == node.tensors, kModelFailed, "called with ", ints.size(),
               " integers and ", tensors.size(), " tensors, recorded were ", node.ints, " and ", node.tensors);
  const auto tensor_at = [&](size_t at) -> Tensor& {
    SCONCE_CHECK(tensors[at], kModelFailed, "tensor ", at, " is null");
    return *aoti_abi::tensor_of(tensors[at]);
  };
  size_t next_int = 0, next_tensor = 0;
  for (const DynamicArgument& dynamic : node.dynamic) {
    Value& argument = call.arguments[dynamic.argument];
    switch (dynamic.kind) {
      case DynamicArgument::Kind::kInt:
        argument = ints[next_int++];
        break;
      case DynamicArgument::Kind::kInts:
        if (Value::Ints* values = argument.get_if<Value::Ints>())
          for (int64_t& value : *values) value = ints[next_int++];
        else
          for (Value& value : argument.as<Value::List>()) value = ints[next_int++];
        break;
      case DynamicArgument::Kind::kTensor:
        argument = Value::borrow(tensor_at(next_tensor++));
        break;
      case DynamicArgument::Kind::kTensors: {
        Value::List& items = argument.as<Value::List>();
        for (size_t i = 0; i < items.size(); ++i)
          if (dynamic.present[i]) items[i] = Value::borrow(tensor_at(next_tensor++));
        break;
      }
    }
  }
  const Release release{call.results};
  node.op->call(call.arguments, call.results);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ExternOutput& output = node.outputs[i];
    Value& result = call.results[i];
    switch (output.kind) {
      case ExternOutput::Kind::kNone:
        break;
      case ExternOutput::Kind::kTensor:
        assign(tensors[next_tensor++], result);
        break;
      case ExternOutput::Kind::kTensors: {
        Value::List& items = result.as<Value::List>();
        SCONCE_CHECK(items.size() == output.count, kModelFailed, "it gave ", items.size(), " tensors, recorded were ",
                     output.count);
        for (Value& item : items) assign(tensors[next_tensor++], item);
        break;
      }
      case ExternOutput::Kind::kInt:
        SCONCE_CHECK(result.to_int() == output.expected, kModelFailed, "it gave ", result.to_int(),
                     ", the code was compiled for ", output.expected);
        break;
    }
  }
}

}  // namespace sconce::custom_ops

extern "C" AOTITorchError aoti_torch_proxy_executor_call_function(AOTIProxyExecutorHandle proxy_executor,
                                                                  int extern_node_index, int num_ints,
                                                                  int64_t* flatten_int_args, int num_tensors,
                                                                  AtenTensorHandle* flatten_tensor_args) {
  using sconce::custom_ops::ProxyExecutor;
  auto* const executor = reinterpret_cast<ProxyExecutor*>(proxy_executor);
  const char* const name = executor ? executor->target(extern_node_index) : "aoti_torch_proxy_executor_call_function";
  const AOTITorchError failed = sconce::aoti_abi::guard(name, [&] {
    SCONCE_CHECK(executor, kModelFailed, "the model was given no proxy executor");
    SCONCE_CHECK(num_ints >= 0 && num_tensors >= 0, kModelFailed, "negative counts of arguments");
    executor->call(extern_node_index, {flatten_int_args, static_cast<size_t>(num_ints)},
                   {flatten_tensor_args, static_cast<size_t>(num_tensors)});
  });
  // Through the C function, which the model's own try block expects.
  if (failed && executor && executor->leaves_run()) SCONCE_FAIL(kModelFailed, name, " failed");
  return failed;
}
