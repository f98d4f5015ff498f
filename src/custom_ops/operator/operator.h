// Operator: a schema and the kernel that runs it. Immutable once registered; calls are as thread-safe as the kernel.
#pragma once

#include <span>
#include <string>

#include "src/custom_ops/operator/schema.h"
#include "src/custom_ops/operator/value.h"

namespace sconce::custom_ops {

// arguments: one value per argument of the schema, defaults filled in; tensors are borrowed for the call. results: one
// per result of the schema, initially None; a result that is an argument may borrow it.
using BoxedKernel = void (*)(std::span<Value> arguments, std::span<Value> results);

class Operator {
 public:
  explicit Operator(Schema schema) : schema_(std::move(schema)) {}
  virtual ~Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  const Schema& schema() const noexcept { return schema_; }
  virtual void call(std::span<Value> arguments, std::span<Value> results) const = 0;
  // False if it is defined but has no kernel.
  virtual bool runnable() const noexcept { return true; }

 private:
  Schema schema_;
};

// Fills in defaults for None. Throws kInvalidArgument "NAME: argument 'x': expected a tensor, got an int" if a value,
// or an element of a list or optional, has the wrong type.
void check_arguments(const Schema& schema, std::span<Value> arguments);

}  // namespace sconce::custom_ops
