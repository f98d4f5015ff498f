// Linked with PyTorch. Runs calls as its loader runs a model.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>

#include "tests/bench/ops/calls.h"

extern "C" int32_t aoti_torch_layout__mkldnn();

namespace bench {

std::shared_ptr<void> enter_library() { return std::make_shared<c10::InferenceMode>(); }
T constant(T t) { return t; }

T opaque(void* data, size_t, DType dtype, const Sizes& sizes, const Sizes& strides,
         const std::vector<uint8_t>& description) {
  AtenTensorHandle handle = nullptr;
  check(aoti_torch_create_tensor_from_blob_v2(data, static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(), 0,
                                              dtype, 0, -1, &handle, aoti_torch_layout__mkldnn(), description.data(),
                                              static_cast<int64_t>(description.size())));
  return T(handle);
}

namespace {

c10::IValue value_of(const Argument& argument, const c10::Type& type) {
  const auto tensor = [](const T& t) -> const at::Tensor& { return *reinterpret_cast<const at::Tensor*>(t.get()); };
  switch (argument.kind) {
    case Argument::Kind::kNone:
      return {};
    case Argument::Kind::kTensor:
      return tensor(argument.tensors[0]);
    case Argument::Kind::kTensors: {
      std::vector<at::Tensor> list;
      for (const T& t : argument.tensors) list.push_back(tensor(t));
      return list;
    }
    case Argument::Kind::kInt:
      return argument.whole;
    case Argument::Kind::kReal:
      return argument.real;
    case Argument::Kind::kBool:
      return argument.whole != 0;
    case Argument::Kind::kText:
      return argument.text;
    case Argument::Kind::kInts:
      if (type.str().find("bool") == std::string::npos) return c10::List<int64_t>(at::IntArrayRef(argument.ints));
      c10::List<bool> flags;
      for (const int64_t flag : argument.ints) flags.push_back(flag != 0);
      return flags;
  }
  return {};
}

}  // namespace

Operator find_operator(const char* name, const char* overload, const std::vector<Argument>& arguments) {
  const auto found = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  std::vector<c10::IValue> values;
  for (size_t i = 0; i < arguments.size(); ++i)
    values.push_back(value_of(arguments[i], *found.schema().arguments().at(i).type()));
  for (size_t i = arguments.size(); i < found.schema().arguments().size(); ++i)
    values.push_back(*found.schema().arguments()[i].default_value());
  return [found, values](AtenTensorHandle* results) {
    std::vector<c10::IValue> stack = values;
    found.callBoxed(stack);
    for (c10::IValue& value : stack)
      if (value.isTensor())
        *results++ = reinterpret_cast<AtenTensorHandle>(new at::Tensor(std::move(value).toTensor()));
  };
}

}  // namespace bench
