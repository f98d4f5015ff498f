// SizeRelations: the sizes of a model's inputs as equations of symbols, checked and solved. Immutable and thread-safe.
//
// A dimension's size is fixed, a range, or an expression of symbols: "s77", "2*s17", "s1 + s65", "s0 // 2". Symbols
// are sizes: 0 or more. Compiled code takes each symbol from one dimension and computes all addresses with it. It
// would therefore read beyond the end of an input with another size.
//
// torch.export does not record whether a size may be 0 or 1: it specialises both, and writes 2. So a symbol with a
// recorded minimum of 2 also accepts sizes from Dim::smallest (0 or 1). The minimum of an expression follows from its
// symbols.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/package.h"

namespace sconce {

class SizeRelations {
 public:
  // A dimension that is not fixed.
  struct Place {
    size_t input = 0, dim = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Range {
    int64_t least = 0, most = INT64_MAX;  // INT64_MAX: unbounded
  };
  // Why sizes do not fit: "expected size 2*s17 = 6 at dimension 0, got 8, where s17 = 3 is dimension 0 of input 1 (y)".
  struct Violation {
    Place place;
    std::string text;
    bool undecidable = false;  // the package lacks the facts to decide whether the sizes fit
  };
  using Label = std::function<std::string(size_t input)>;  // what an error calls an input

  SizeRelations();
  // bounds: sizes are refused if one of these accesses would leave its tensor. kInternal: a bound has no expression of
  // the inputs' symbols.
  explicit SizeRelations(std::span<const TensorSpec> inputs, std::span<const AccessBound> bounds = {});

  // All dimensions that are not fixed, by input and dimension.
  const std::vector<Place>& places() const noexcept;
  // Whether sizes fit; one size per element of places(). Allocates only above 64 places or symbols.
  bool agrees(std::span<const int64_t> sizes) const;
  // nullopt if the sizes fit.
  std::optional<Violation> violation(std::span<const int64_t> sizes, const Label& label) const;

  // The range of a dimension that is not fixed, while the other sizes are unknown. A dimension with an expression may
  // not accept every size in it.
  Range range(Place place) const;
  // Whether the dimension accepts this size.
  bool takes(Place place, int64_t size) const;

  // Finds sizes of all places. value: gives each symbol, and each dimension without a symbol, a value in its recorded
  // range; called with the symbol's name, or "INPUT,DIM". given: values of symbols or of whole expressions, used even
  // outside the recorded range. The values of symbols that are not given are adjusted until every dimension accepts
  // its size. nullopt if no sizes were found.
  using Value = std::function<int64_t(const std::string& symbol, Range recorded)>;
  std::optional<std::vector<int64_t>> sizes(const std::map<std::string, int64_t>& given, const Value& value) const;

 private:
  struct Program;
  std::shared_ptr<const Program> program_;  // shared by copies
};

// The smallest size of a dimension, without regard to other dimensions.
int64_t least_size(const Dim& dim);
bool takes_size(const Dim& dim, int64_t size);

// The names of the symbols in an expression, each once; empty if it is not an expression of sizes.
std::vector<std::string> symbols_of(std::string_view expression);
// The expression with renamed symbols, in Python's form: "s0*s1" as "d4*d7". Any other text is returned unchanged.
std::string renamed_symbols(std::string_view expression, const std::function<std::string(const std::string&)>& name);
// Whether the sum of two sizes of this expression is again such a size: true of "s0" and of "6*s0", false of "1 +
// 2*s0".
bool closed_under_sums(std::string_view expression);

}  // namespace sconce
