// SizeSystem: the relations of a package's sizes, in the order of their solution. Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "package_format/sizes/size_bounds.h"
#include "package_format/sizes/size_expression.h"
#include "package_format/sizes/size_sum.h"
#include "sconce/package.h"
#include "sconce/sizes/size_relations.h"

namespace sconce {

struct SizeSystem {
  using Place = SizeRelations::Place;
  using Range = SizeRelations::Range;

  struct Symbol {
    std::string name;
    Range recorded, accepted;  // accepted: from `smallest` on, if the recorded minimum is 2
    int64_t smallest = 0;      // Dim::smallest
    bool known = false;        // a size determines it
    size_t size = 0;           // index of this size in `sizes`
  };
  // A dimension that is not fixed.
  struct Size {
    Place place;
    std::string text;                                  // the expression; empty: none
    std::optional<SizeExpression> expression, placed;  // placed: for the values of all symbols
    std::vector<size_t> symbols;                       // of the expression
    Range recorded, accepted;                          // accepted: the part that symbols do not imply
  };
  enum class Kind : uint8_t {
    kRange,        // the size is within its range; nothing else is known about it
    kEqual,        // equal to `other`
    kSymbol,       // the size is the symbol, which no earlier step determines
    kSame,         // the size equals the known symbol
    kAffine,       // the expression is a*s + b for the symbol s; all other symbols are known
    kStrict,       // the expression increases with the symbol; all other symbols are known
    kComputed,     // all symbols of the expression are known
    kUndecidable,  // its relation to its symbols is unknown
  };
  struct Step {
    Kind kind;
    uint32_t size = 0;   // its index
    uint32_t other = 0;  // a symbol, or another size
  };
  enum class Failure : uint8_t {
    kNone,
    kTooSmall,
    kTooLarge,
    kUnequal,
    kNotWhole,
    kSymbolRange,
    kUntold,
    kOverflow,
    kUndecidable,
    kBound,  // an access would leave its tensor
  };
  struct Outcome {
    Failure failure = Failure::kNone;
    size_t step = 0;  // for kBound: index of the bound
  };

  SizeSystem(std::span<const TensorSpec> inputs, std::span<const AccessBound> bounds);

  // given: one for each of `sizes`. values: room for one of each symbol; those of the steps before a failure are set.
  Outcome solve(const int64_t* given, int64_t* values) const noexcept;
  // Whether solve() would find no failure, in less time: sizes that are sums of known symbols come last, side by side
  // in memory. values: as for solve(), in any state after a failure.
  bool agrees(const int64_t* given, int64_t* values) const noexcept;
  // How a size of this growth determines its symbol; nullopt if it may not.
  static std::optional<Kind> kind_of(SizeExpression::Growth growth) noexcept;
  // The expression of a size. values: of all symbols.
  std::optional<int64_t> value(const Size& size, const int64_t* values) const noexcept;
  // Sets values[symbol] so that the placed expression has the value `wanted`. All its other symbols are set.
  Failure invert(const SizeExpression& placed, size_t symbol, Kind kind, int64_t wanted,
                 int64_t* values) const noexcept;

  std::vector<Size> sizes;
  std::vector<Symbol> symbols;
  std::vector<Step> steps;
  SizeBounds bounds;

 private:
  // A step of kind kComputed whose expression is a sum.
  struct SumCheck {
    SizeSum sum;
    Range accepted;
    uint32_t size;
  };

  Outcome solve(std::span<const Step> steps, const int64_t* given, int64_t* values) const noexcept;
  void separate_sums();
  void add_plain();
  void add_expressions();
  void add_rest();
  bool add_expression(size_t size);
  void learn_range(const Size& size, size_t symbol);
  void finish_ranges();

  std::vector<SumCheck> sums_;
  std::vector<Step> other_steps_;  // all of `steps` that are not in sums_
};

}  // namespace sconce
