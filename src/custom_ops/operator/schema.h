// Schemas of operators: "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor". Matches
// torch::jit::SchemaParser, torch 2.15, for the types that operators use.
//
// Immutable values. Any malformed text throws kInvalidArgument "schema 'TEXT': WHAT at COLUMN".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/custom_ops/operator/value.h"

namespace sconce::custom_ops {

enum class TypeKind : uint8_t {
  kTensor,
  kInt,  // also SymInt
  kFloat,
  kBool,
  kScalar,
  kString,
  kDType,
  kLayout,
  kMemoryFormat,
  kDevice,
  kGenerator,
  kOther,  // storages, streams, classes, dicts: known by name only, not callable
  kList,
  kOptional,
};

struct Type {
  TypeKind kind = TypeKind::kOther;
  std::shared_ptr<const Type> element;  // of lists and optionals
  int64_t list_size = 0;                // int[2]; 0: any
  std::string name;                     // of kOther

  bool is_list_of(TypeKind of) const noexcept { return kind == TypeKind::kList && element->kind == of; }
  bool optional() const noexcept { return kind == TypeKind::kOptional; }
  std::string text() const;  // "Tensor?[]"
};

struct SchemaArgument {
  std::string name;  // may be empty for a result
  Type type;
  std::optional<Value> default_value;
  bool keyword_only = false;
  std::string alias;  // "a" of Tensor(a!)
  bool written = false;
};

struct Schema {
  std::string ns, name, overload;  // "aten", "add", "Tensor"
  std::vector<SchemaArgument> arguments, results;

  std::string qualified() const;  // "aten::add.Tensor"
  // The index of the argument with that name, or -1.
  int argument(std::string_view argument_name) const noexcept;
};

// default_ns applies to names without "NS::".
Schema parse_schema(std::string_view text, std::string_view default_ns = {});
// Splits "aten::add.Tensor"; a missing overload is "".
Schema parse_operator_name(std::string_view text, std::string_view default_ns = {});

}  // namespace sconce::custom_ops
