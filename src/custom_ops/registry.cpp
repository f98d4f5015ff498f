#include "src/custom_ops/registry.h"

#include <map>
#include <string>

#include "sconce/check.h"
#include "sconce/mutex.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/device_calls.h"
#include "src/device/device_backend.h"

namespace sconce::custom_ops {
namespace {

class AtenOperator final : public Operator {
 public:
  AtenOperator(Schema schema, const AtenRow& row, bool random)
      : Operator(std::move(schema)), kernel_(row.kernel), any_device_(row.kind == kAnyDevice), random_(random) {}
  void call(std::span<Value> arguments, std::span<Value> results) const override {
    if (any_device_) return kernel_(arguments, results);
    const Device device = device_of(arguments);
    if (device.type == DeviceType::kCpu) [[likely]]
      return kernel_(arguments, results);
    if (const auto kernel = device_kernel(device)) return kernel(arguments, results);
    SCONCE_CHECK(!random_, kUnsupported, "it draws random numbers and has no kernel for ", to_string(device));
    call_on_host(schema(), kernel_, arguments, results);
  }

 private:
  DeviceBackend::NamedKernel device_kernel(Device device) const {
    std::call_once(looked_up_, [&] { device_kernel_ = device_backend(device).kernel_named(schema().qualified()); });
    return device_kernel_;
  }

  BoxedKernel kernel_;
  bool any_device_;
  bool random_;  // then the CPU's kernel is no substitute: its random streams differ
  // Looked up once, because there is only one type of device besides the CPU.
  mutable std::once_flag looked_up_;
  mutable DeviceBackend::NamedKernel device_kernel_ = nullptr;
};

// "aten::add.Tensor(..." -> "aten::add.Tensor"
std::string_view name_of(const AtenRow& row) {
  const std::string_view schema = row.schema;
  return schema.substr(0, schema.find('('));
}

struct Registry {
  Mutex mutex;
  struct Row {
    const AtenRow* row;
    bool random;
  };
  std::map<std::string_view, Row> rows;
  std::map<std::string, std::shared_ptr<const Operator>, std::less<>> operators SCONCE_GUARDED_BY(mutex);

  Registry() {
    for (const auto table : aten_tables())
      for (const AtenRow& row : table)
        rows.emplace(name_of(row), Row{&row, row.kind == kRandom || table.data() == aten_random_rows().data()});
  }
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

std::shared_ptr<const Operator> find_operator(std::string_view name) {
  Registry& all = registry();
  const MutexLock lock(all.mutex);
  if (const auto known = all.operators.find(name); known != all.operators.end()) return known->second;
  const auto row = all.rows.find(name);
  if (row == all.rows.end()) return nullptr;
  const auto& [found, random] = row->second;
  auto made = std::make_shared<AtenOperator>(parse_schema(found->schema), *found, random);
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
  const MutexLock lock(all.mutex);
  SCONCE_CHECK(!all.rows.contains(name) && all.operators.emplace(name, operator_).second, kAlreadyExists,
               "there is an operator ", name, " already");
}

Registration::~Registration() {
  Registry& all = registry();
  const MutexLock lock(all.mutex);
  all.operators.erase(operator_->schema().qualified());
}

}  // namespace sconce::custom_ops
