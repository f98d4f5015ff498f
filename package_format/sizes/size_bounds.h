// SizeBounds: the accesses of generated code that depend on sizes, compiled for a check of each request. Immutable.
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
  // The access that leaves its tensor, with its values.
  struct Broken {
    size_t bound = 0;
    int64_t element = 0, elements = 0;
  };

  SizeBounds() = default;
  // symbols: the names of the symbols that a request's sizes determine, or "" for one that they do not. A bound with
  // another symbol is left out: such sizes are refused before it counts. kInternal: a text is not an expression.
  SizeBounds(std::span<const AccessBound> bounds, const std::vector<std::string>& symbols);

  // values: one for each symbol. nullopt: each access that happens lies within its tensor, or its element overflows 64
  // bits. Does not allocate.
  std::optional<Broken> broken(const int64_t* values) const noexcept;

  const std::string& access(size_t bound) const { return bounds_[bound].access; }
  // "3*(s77 // 2) + -1 of 3*s17"
  std::string text(size_t bound) const;
  // Indices of the symbols in the bound, each once; those of the number of elements come first.
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
  size_t symbols_ = 0;  // their number
};

}  // namespace sconce
