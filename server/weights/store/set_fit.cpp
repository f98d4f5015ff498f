#include "server/weights/store/set_fit.h"

#include <map>
#include <string_view>

#include "sconce/dtype.h"
#include "sconce/tensor.h"
#include "src/support/excerpt.h"

namespace sconce::server::weights {
namespace {

std::string type_of(DType dtype, const std::vector<int64_t>& shape) {
  return std::string(dtype_name(dtype)) + " " + excerpt(to_string(IntSpan(shape)));
}

}  // namespace

std::string misfit(std::span<const WeightEntry> set, std::span<const ConstantSpec> constants) {
  std::map<std::string_view, const WeightEntry*> entries;
  for (const WeightEntry& entry : set) entries.emplace(entry.name, &entry);
  std::map<std::string_view, bool> known;
  for (const ConstantSpec& constant : constants) {
    if (constant.folded || constant.opaque) continue;
    const std::string_view name = constant.fqn.empty() ? constant.name : constant.fqn;
    if (!known.emplace(name, true).second) continue;
    const auto at = entries.find(name);
    if (at == entries.end()) return "the package's constant '" + excerpt(name) + "' is not among them";
    const WeightEntry& entry = *at->second;
    if (entry.shape != constant.shape || (constant.dtype && entry.dtype != *constant.dtype))
      return "constant '" + excerpt(name) + "' is " + type_of(constant.dtype.value_or(entry.dtype), constant.shape) +
             " in the package, " + type_of(entry.dtype, entry.shape) + " in the set";
  }
  for (const WeightEntry& entry : set)
    if (!known.contains(entry.name)) return "the package has no constant '" + excerpt(entry.name) + "'";
  return {};
}

}  // namespace sconce::server::weights
