// Operator: a schema and what runs it. Immutable after it was registered; calls are thread-safe as its kernel is.
#pragma once

#include <span>
#include <string>

#include "src/custom_ops/operator/schema.h"
#include "src/custom_ops/operator/value.h"

namespace sconce::custom_ops {

// arguments: one value per argument of the schema, defaults filled in. results: as many as the schema has, None at
// first; a result that is one of the arguments may borrow it. Tensors of arguments are borrowed for the call.
using BoxedKernel = void (*)(std::span<Value> arguments, std::span<Value> results);

class Operator {
 public:
  explicit Operator(Schema schema) : schema_(std::move(schema)) {}
  virtual ~Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  const Schema& schema() const noexcept { return schema_; }
  virtual void call(std::span<Value> arguments, std::span<Value> results) const = 0;
  // False where it is defined but nothing implements it.
  virtual bool runnable() const noexcept { return true; }

 private:
  Schema schema_;
};

// kInvalidArgument "NAME: argument 'x': expected a tensor, got an int" where a value does not fit its type; lists and
// optionals are looked into. What is None and has a default gets it.
void check_arguments(const Schema& schema, std::span<Value> arguments);

}  // namespace sconce::custom_ops
