#include "package_format/sizes/recorded_sizes.h"

#include <algorithm>

#include "package_format/sizes/size_expression.h"
#include "package_format/text/json_value.h"
#include "sconce/check.h"

namespace sconce {
namespace {

using Json = OrderedJson;

constexpr const char* kKey = "sconce_sizes";

[[noreturn]] void bad(const std::string& why) { SCONCE_FAIL(kCorruptPackage, "metadata ", kKey, ": ", why); }

int64_t bound_of(const Json& recorded, const char* name, int64_t otherwise) {
  const auto at = recorded.find(name);
  if (at == recorded.end()) return otherwise;
  if (!at->is_number_integer() || *at < 0) bad(std::string(name) + " is no size");
  return at->get<int64_t>();
}

void apply(const Json& recorded, Dim& dim, const std::string& place) {
  if (recorded.is_number_integer()) {
    if (!dim.is_static() || recorded != dim.min) bad(place + " is not fixed to this size in the source");
    return;
  }
  const auto size = recorded.is_object() ? recorded.find("size") : recorded.end();
  if (!recorded.is_object() || size == recorded.end() || !size->is_string()) bad(place + " has no size");
  const auto expression = SizeExpression::parse(size->get<std::string>());
  if (!expression) bad(place + " has no expression of sizes");
  if (dim.is_static()) bad(place + " is fixed in the source");
  const auto written = SizeExpression::parse(dim.symbol);
  if (written && written->is_symbol() && expression->is_symbol() && written->text() != expression->text())
    bad(place + " is " + dim.symbol + " in the source");
  // An expression of the source stays: outputs are compared with its text.
  if (!written || written->is_symbol()) dim.symbol = expression->text();
  // If 0 or 1 was declared, the source has the values that follow from 2.
  dim.min = std::min(dim.min, bound_of(recorded, "min", dim.min));
  dim.max = std::min(dim.max, bound_of(recorded, "max", dim.max));
  if (dim.min >= dim.max) bad(place + " has no range");
}

}  // namespace

void apply_recorded_sizes(ModelSpec& spec) {
  const auto at = spec.metadata.find(kKey);
  if (at == spec.metadata.end() || !spec.has_source) return;
  const Json recorded = Json::parse(at->second, nullptr, false);
  if (!recorded.is_object() || !recorded.contains("version")) bad("no JSON object with a version");
  if (recorded["version"] != 1) return;
  const auto inputs = recorded.find("inputs");
  if (inputs == recorded.end() || !inputs->is_array() || inputs->size() != spec.inputs.size())
    bad("not one entry for each of " + std::to_string(spec.inputs.size()) + " inputs");
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    TensorSpec& input = spec.inputs[i];
    const Json& sizes = (*inputs)[i];
    if (!input.has_shape) continue;
    if (!sizes.is_array() || sizes.size() != input.dims.size())
      bad("input " + std::to_string(i) + " has " + std::to_string(input.dims.size()) + " dimensions in the source");
    for (size_t d = 0; d < input.dims.size(); ++d)
      apply(sizes[d], input.dims[d], "dimension " + std::to_string(d) + " of input " + std::to_string(i));
  }
}

}  // namespace sconce
