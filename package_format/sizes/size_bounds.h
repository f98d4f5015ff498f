// SizeBounds: the accesses of generated code that sizes decide, compiled for a check of each request. Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "package_format/sizes/size_expression.h"
#include "sconce/package.h"

namespace sconce {

class SizeBounds {
 public:
  // Which access leaves its tensor, and where.
  struct Broken {
    size_t bound = 0;
    int64_t element = 0, elements = 0;
  };

  SizeBounds() = default;
  // symbols: the names of those that a request's sizes tell, or "" for one that they do not. Left out is a bound that
  // has another: such sizes are refused before it counts. kInternal: a text is no expression.
  SizeBounds(std::span<const AccessBound> bounds, const std::vector<std::string>& symbols);

  // values: one for each symbol. nullopt: each access that is made lies within its tensor, or its place has no value in
  // 64 bits. Does not allocate.
  std::optional<Broken> broken(const int64_t* values) const noexcept;

  const std::string& access(size_t bound) const { return bounds_[bound].access; }
  // "3*(s77 // 2) + -1 of 3*s17"
  std::string text(size_t bound) const;
  // Those of how many elements there are first, each once; the number of these.
  std::vector<size_t> symbols(size_t bound) const;
  size_t symbols_of_tensor(size_t bound) const { return bounds_[bound].elements.symbols.size(); }
  size_t size() const noexcept { return bounds_.size(); }

 private:
  struct Expression {
    SizeExpression expression, placed;  // placed: for the values of all symbols
    std::vector<size_t> symbols;
  };
  struct Bound {
    std::string access;
    std::vector<Expression> made;
    Expression element, elements;
  };

  std::vector<Bound> bounds_;
  size_t symbols_ = 0;  // how many there are
};

}  // namespace sconce
