#include "sconce/made_up_inputs.h"

#include <algorithm>
#include <cstring>

#include "sconce/check.h"
#include "src/tensor/fill.h"

namespace sconce {
namespace {

int64_t size_of(const Dim& dim, const std::string& symbol, MadeUpSizes& sizes) {
  if (dim.is_static()) return dim.min;
  const auto [it, fresh] = sizes.chosen.emplace(symbol, 0);
  if (fresh) {
    const int64_t least = std::max({dim.min, sizes.others, int64_t{1}});
    const int64_t more = sizes.shift + sizes.step * static_cast<int64_t>(sizes.chosen.size() - 1);
    it->second = least < dim.max && more < dim.max - least ? least + more : dim.max;
  }
  return it->second;
}

}  // namespace

std::vector<Tensor> made_up_inputs(std::span<const TensorSpec> specs, MadeUpSizes sizes,
                                   std::span<const std::string> names) {
  std::vector<Tensor> inputs;
  int64_t elements = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorSpec& spec = specs[i];
    const std::string& name = names.empty() ? spec.name : names[i];
    SCONCE_CHECK(spec.has_shape && spec.dtype && spec.strides.size() == spec.dims.size(), kUnsupported, "input '", name,
                 "' is not described in full");
    std::vector<int64_t> shape;
    int64_t product = 1;
    bool fits = true;
    for (size_t d = 0; d < spec.dims.size(); ++d) {
      const Dim& dim = spec.dims[d];
      // No symbol has a comma.
      const std::string symbol = dim.symbol.empty() ? std::to_string(i) + "," + std::to_string(d) : dim.symbol;
      shape.push_back(size_of(dim, symbol, sizes));
      fits = fits && !__builtin_mul_overflow(product, shape.back(), &product);
    }
    fits = fits && !__builtin_add_overflow(elements, product, &elements) && elements <= sizes.most_elements;
    SCONCE_CHECK(fits, kUnsupported, "input '", name, "' is too large to be made up");
    Tensor input = Tensor::empty_strided(shape, strides_for(spec, shape), *spec.dtype);
    if (input.storage()->bytes() > 0) std::memset(input.storage()->data(), 0, input.storage()->bytes());
    // Where zero is no index of a table, or a divisor, the nearest value that the model takes.
    if (const double value = spec.values.nearest(0, !is_floating(*spec.dtype)); value != 0) fill(input, value);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace sconce
