#include "package_format/sizes/size_bounds.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"

namespace sconce {

SizeBounds::SizeBounds(std::span<const AccessBound> bounds, const std::vector<std::string>& symbols)
    : symbols_(symbols.size()) {
  bool told = true;
  const auto compiled = [&](const std::string& text) {
    std::optional<SizeExpression> parsed = SizeExpression::parse(text);
    SCONCE_CHECK(parsed, kInternal, "no expression of sizes: ", text);
    Expression expression{.expression = std::move(*parsed), .placed = {}, .symbols = {}};
    for (const std::string& name : expression.expression.symbols()) {
      const auto at = std::find(symbols.begin(), symbols.end(), name);
      told = told && at != symbols.end();
      expression.symbols.push_back(static_cast<size_t>(at - symbols.begin()));
    }
    if (told) expression.placed = expression.expression.placed(expression.symbols);
    return expression;
  };
  for (const AccessBound& bound : bounds) {
    told = true;
    Bound made{
        .access = bound.access, .made = {}, .element = compiled(bound.element), .elements = compiled(bound.elements)};
    for (const std::string& condition : bound.made) made.made.push_back(compiled(condition));
    if (told) bounds_.push_back(std::move(made));
  }
}

std::optional<SizeBounds::Broken> SizeBounds::broken(const int64_t* values) const noexcept {
  const std::span all(values, symbols_);
  for (size_t i = 0; i < bounds_.size(); ++i) {
    const Bound& bound = bounds_[i];
    const std::optional<int64_t> element = bound.element.placed.value(all), elements = bound.elements.placed.value(all);
    if (!element || !elements || (*element >= 0 && *element < *elements)) continue;
    if (std::all_of(bound.made.begin(), bound.made.end(),
                    [&](const Expression& condition) { return condition.placed.value(all).value_or(-1) >= 0; }))
      return Broken{i, *element, *elements};
  }
  return std::nullopt;
}

std::string SizeBounds::text(size_t bound) const {
  return bounds_[bound].element.expression.text() + " of " + bounds_[bound].elements.expression.text();
}

std::vector<size_t> SizeBounds::symbols(size_t bound) const {
  std::vector<size_t> result;
  for (const Expression* expression : {&bounds_[bound].elements, &bounds_[bound].element})
    for (const size_t symbol : expression->symbols)
      if (std::find(result.begin(), result.end(), symbol) == result.end()) result.push_back(symbol);
  return result;
}

}  // namespace sconce
