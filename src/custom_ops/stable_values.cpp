#include "src/custom_ops/stable_values.h"

#include <cstring>
#include <memory>

#include "sconce/check.h"
#include "src/aoti_abi/abi_types.h"

namespace sconce::custom_ops {
namespace {

template <class T>
StableIValue bits_of(T value) {
  StableIValue bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}
template <class T>
T from_bits(StableIValue bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
template <class T>
std::unique_ptr<T> owned(StableIValue bits, const Type& type) {
  SCONCE_CHECK(bits != 0, kInvalidArgument, "a value of type ", type.text(), " is null");
  return std::unique_ptr<T>(from_bits<T*>(bits));
}

}  // namespace

StableIValue to_stable(const Type& type, const Value& value) {
  switch (type.kind) {
    case TypeKind::kOptional:
      if (value.is_none()) return 0;
      return bits_of(std::make_unique<StableIValue>(to_stable(*type.element, value)).release());
    case TypeKind::kTensor: {
      // An absent tensor becomes a handle of an undefined tensor.
      Value borrowed = value.is_none() ? Value(Tensor()) : value;
      return bits_of(aoti_abi::new_handle(borrowed.tensor()));
    }
    case TypeKind::kInt:
      return bits_of(value.to_int());
    case TypeKind::kFloat:
      return bits_of(value.to_double());
    case TypeKind::kBool:
      return bits_of(value.to_bool());
    case TypeKind::kDType:
    case TypeKind::kLayout:
    case TypeKind::kMemoryFormat:
      return bits_of(static_cast<int32_t>(value.to_int()));
    case TypeKind::kDevice: {
      Value copied = value;
      const Device device = copied.as<Device>();
      return static_cast<uint64_t>(static_cast<uint32_t>(device.type)) << 32 |
             static_cast<uint32_t>(int32_t{device.index});
    }
    case TypeKind::kString: {
      Value copied = value;
      return bits_of(new std::string(std::move(copied.as<std::string>())));
    }
    case TypeKind::kGenerator: {
      Value copied = value;
      return bits_of(copied.as<Generator*>());
    }
    case TypeKind::kList: {
      auto list = std::make_unique<StableList>();
      if (const auto* ints = value.get_if<Value::Ints>()) {
        for (const int64_t item : *ints) list->push_back(bits_of(item));
      } else if (const auto* reals = value.get_if<Value::Reals>()) {
        for (const double item : *reals) list->push_back(bits_of(item));
      } else {
        Value copied = value;
        for (const Value& item : copied.as<Value::List>()) list->push_back(to_stable(*type.element, item));
      }
      return bits_of(list.release());
    }
    case TypeKind::kScalar:
    case TypeKind::kOther:
      break;
  }
  SCONCE_FAIL(kUnsupported, "values of type ", type.text(), " cannot be passed through the stable ABI");
}

Value from_stable(const Type& type, StableIValue stable) {
  switch (type.kind) {
    case TypeKind::kOptional: {
      if (stable == 0) return {};
      const auto inner = owned<StableIValue>(stable, type);
      return from_stable(*type.element, *inner);
    }
    case TypeKind::kTensor: {
      const auto handle = from_bits<AtenTensorHandle>(stable);
      SCONCE_CHECK(handle, kInvalidArgument, "a value of type ", type.text(), " is null");
      Tensor tensor = std::move(*aoti_abi::tensor_of(handle));
      aoti_abi::delete_handle(handle);
      return Value(std::move(tensor));
    }
    case TypeKind::kInt:
      return from_bits<int64_t>(stable);
    case TypeKind::kFloat:
      return from_bits<double>(stable);
    case TypeKind::kBool:
      return (stable & 0xFF) != 0;
    case TypeKind::kDType:
    case TypeKind::kLayout:
    case TypeKind::kMemoryFormat:
      return int64_t{from_bits<int32_t>(stable)};
    case TypeKind::kDevice: {
      const auto device_type = static_cast<int32_t>(stable >> 32);
      return Device{static_cast<DeviceType>(device_type),
                    static_cast<int8_t>(device_type == 0 ? -1 : from_bits<int32_t>(stable))};
    }
    case TypeKind::kString:
      return Value(std::move(*owned<std::string>(stable, type)));
    case TypeKind::kGenerator:
      return from_bits<Generator*>(stable);
    case TypeKind::kList: {
      const auto list = owned<StableList>(stable, type);
      if (type.element->kind == TypeKind::kInt) {
        Value::Ints values;
        for (const StableIValue item : *list) values.push_back(from_bits<int64_t>(item));
        return values;
      }
      if (type.element->kind == TypeKind::kFloat) {
        Value::Reals values;
        for (const StableIValue item : *list) values.push_back(from_bits<double>(item));
        return values;
      }
      Value::List values;
      for (const StableIValue item : *list) values.push_back(from_stable(*type.element, item));
      return values;
    }
    case TypeKind::kScalar:
      // PyTorch passes numbers of unknown kind as floats.
      return from_bits<double>(stable);
    case TypeKind::kOther:
      break;
  }
  SCONCE_FAIL(kUnsupported, "values of type ", type.text(), " cannot be passed through the stable ABI");
}

}  // namespace sconce::custom_ops
