#include "src/custom_ops/registry.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "sconce/check.h"
#include "src/custom_ops/aten.h"

namespace sconce::custom_ops {
namespace {

class AtenOperator final : public Operator {
 public:
  AtenOperator(Schema schema, BoxedKernel kernel) : Operator(std::move(schema)), kernel_(kernel) {}
  void call(std::span<Value> arguments, std::span<Value> results) const override { kernel_(arguments, results); }

 private:
  BoxedKernel kernel_;
};

// "aten::add.Tensor(..." -> "aten::add.Tensor"
std::string_view name_of(const AtenRow& row) {
  const std::string_view schema = row.schema;
  return schema.substr(0, schema.find('('));
}

struct Registry {
  std::mutex mutex;
  std::map<std::string_view, const AtenRow*> rows;
  std::map<std::string, std::shared_ptr<const Operator>, std::less<>> operators;

  Registry() {
    for (const auto table : {aten_tensor_rows(), aten_math_rows(), aten_linalg_rows(), aten_random_rows()})
      for (const AtenRow& row : table) rows.emplace(name_of(row), &row);
  }
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

std::shared_ptr<const Operator> find_operator(std::string_view name) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  if (const auto known = all.operators.find(name); known != all.operators.end()) return known->second;
  const auto row = all.rows.find(name);
  if (row == all.rows.end()) return nullptr;
  auto made = std::make_shared<AtenOperator>(parse_schema(row->second->schema), row->second->kernel);
  all.operators.emplace(std::string(name), made);
  return made;
}

std::vector<std::string> aten_operators() {
  std::vector<std::string> names;
  for (const auto& [name, row] : registry().rows) names.emplace_back(name);
  return names;
}

Registration::Registration(std::shared_ptr<const Operator> added) : operator_(std::move(added)) {
  Registry& all = registry();
  const std::string name = operator_->schema().qualified();
  std::lock_guard lock(all.mutex);
  SCONCE_CHECK(!all.rows.contains(name) && all.operators.emplace(name, operator_).second, kAlreadyExists,
               "there is an operator ", name, " already");
}

Registration::~Registration() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  all.operators.erase(operator_->schema().qualified());
}

}  // namespace sconce::custom_ops
