#include "src/custom_ops/operator/operator.h"

#include <algorithm>

#include "sconce/check.h"

namespace sconce::custom_ops {
namespace {

bool fits(const Type& type, const Value& value) {
  switch (type.kind) {
    case TypeKind::kOptional:
      return value.is_none() || fits(*type.element, value);
    case TypeKind::kList:
      if (value.get_if<Value::Ints>()) return type.element->kind == TypeKind::kInt;
      if (value.get_if<Value::Reals>()) return type.element->kind == TypeKind::kFloat;
      if (const auto* items = value.get_if<Value::List>())
        return std::all_of(items->begin(), items->end(), [&](const Value& item) { return fits(*type.element, item); });
      return false;
    case TypeKind::kTensor:
      return value.is_tensor();
    case TypeKind::kString:
      return value.get_if<std::string>();
    case TypeKind::kDevice:
      return value.get_if<Device>();
    case TypeKind::kGenerator:
      return value.get_if<Generator*>();
    case TypeKind::kFloat:
      return value.get_if<double>() || value.get_if<int64_t>();
    case TypeKind::kScalar:
      return value.get_if<double>() || value.get_if<int64_t>() || value.get_if<bool>() ||
             value.get_if<std::complex<double>>();
    case TypeKind::kBool:
      return value.get_if<bool>();
    case TypeKind::kInt:
    case TypeKind::kDType:
    case TypeKind::kLayout:
    case TypeKind::kMemoryFormat:
      return value.get_if<int64_t>();
    case TypeKind::kOther:
      return false;
  }
  return false;
}

}  // namespace

void check_arguments(const Schema& schema, std::span<Value> arguments) {
  SCONCE_CHECK(arguments.size() == schema.arguments.size(), kInvalidArgument, schema.qualified(), ": expected ",
               schema.arguments.size(), " arguments, got ", arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const SchemaArgument& argument = schema.arguments[i];
    if (arguments[i].is_none() && argument.default_value) arguments[i] = *argument.default_value;
    SCONCE_CHECK(fits(argument.type, arguments[i]), kInvalidArgument, schema.qualified(), ": argument '", argument.name,
                 "' is of type ", argument.type.text(), ", got ", arguments[i].kind());
  }
}

}  // namespace sconce::custom_ops
