// Linked with Sconce. Results come from the replica's arena, as in a lane of the server.
#include "src/custom_ops/registry.h"
#include "src/device/cpu_arena.h"
#include "tests/bench/ops/calls.h"

namespace bench {

std::shared_ptr<void> enter_library() {
  struct Lane {
    sconce::CpuArena::Ptr arena = sconce::CpuArena::create();
    sconce::CpuArena::Scope scope{arena.get()};
  };
  return std::make_shared<Lane>();
}

T constant(T t) {
  sconce::aoti_abi::tensor_of(t.get())->storage()->set_immutable(true);
  return t;
}

T opaque(void* data, size_t bytes, DType dtype, const Sizes& sizes, const Sizes& strides,
         const std::vector<uint8_t>& description) {
  using namespace sconce;
  auto storage = StoragePtr::adopt(new Storage(data, bytes, Device{}, nullptr, nullptr));
  const auto* const first = reinterpret_cast<const std::byte*>(description.data());
  storage->set_opaque_metadata({first, first + description.size()});
  storage->set_immutable(true);
  return T(aoti_abi::new_handle(
      Tensor(std::move(storage), static_cast<sconce::DType>(dtype), sizes, strides, 0, Layout::kMkldnn)));
}

namespace {

using sconce::custom_ops::TypeKind;
using sconce::custom_ops::Value;

Value value_of(const Argument& argument, const sconce::custom_ops::Type& type) {
  const auto tensor = [](const T& t) { return Value(*sconce::aoti_abi::tensor_of(t.get())); };
  switch (argument.kind) {
    case Argument::Kind::kNone:
      return {};
    case Argument::Kind::kTensor:
      return tensor(argument.tensors[0]);
    case Argument::Kind::kTensors: {
      Value::List list;
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
      if (!(type.optional() ? *type.element : type).is_list_of(TypeKind::kBool)) return argument.ints;
      Value::List flags;
      for (const int64_t flag : argument.ints) flags.push_back(flag != 0);
      return flags;
  }
  return {};
}

}  // namespace

Operator find_operator(const char* name, const char* overload, const std::vector<Argument>& arguments) {
  const std::string full = std::string(name) + (*overload ? "." : "") + overload;
  const auto found = sconce::custom_ops::find_operator(full);
  if (!found) throw std::runtime_error("there is no operator " + full);
  std::vector<Value> values;
  for (size_t i = 0; i < arguments.size(); ++i)
    values.push_back(value_of(arguments[i], found->schema().arguments.at(i).type));
  values.resize(found->schema().arguments.size());
  check_arguments(found->schema(), values);
  return [found, values](AtenTensorHandle* results) mutable {
    std::vector<Value> given(found->schema().results.size());
    found->call(values, given);
    for (Value& value : given)
      if (value.is_tensor()) *results++ = sconce::aoti_abi::new_handle(value.tensor());
  };
}

}  // namespace bench
