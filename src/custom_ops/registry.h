// The operators of this process by name: ATen's, and those of custom operator libraries while they are loaded.
// Thread-safe.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "src/custom_ops/operator/operator.h"

namespace sconce::custom_ops {

// "aten::add.Tensor", "mylib::op". Null where there is none of that name, or none that runs (defined without a kernel).
// ATen's are made when first asked for and stay; others live as long as somebody holds them.
std::shared_ptr<const Operator> find_operator(std::string_view name);

// ATen operators that can be called by name, sorted.
std::vector<std::string> aten_operators();

// Where a library's operators are registered; they are found until the object goes. kAlreadyExists for a name that is
// taken.
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
