// The operators of this process by name: ATen's, and those of loaded custom operator libraries. Thread-safe.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "src/custom_ops/operator/operator.h"

namespace sconce::custom_ops {

// Finds "aten::add.Tensor" or "mylib::op". Null if there is none, or if it has no kernel. ATen's are made on first use
// and stay; other operators live while they are referenced.
std::shared_ptr<const Operator> find_operator(std::string_view name);

// The ATen operators that can be called by name, sorted.
std::vector<std::string> aten_operators();

// Registers an operator of a library for the object's lifetime. Throws kAlreadyExists if the name is taken.
class Registration {
 public:
  explicit Registration(std::shared_ptr<const Operator> added);
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration();

 private:
  std::shared_ptr<const Operator> operator_;
};

}  // namespace sconce::custom_ops
