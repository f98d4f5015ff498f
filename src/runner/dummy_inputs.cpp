#include "src/runner/dummy_inputs.h"

#include <algorithm>
#include <cstring>

#include "sconce/check.h"
#include "sconce/sizes/size_relations.h"
#include "src/tensor/fill.h"

namespace sconce {
namespace {

// The sizes of all dimensions that are not fixed.
std::vector<int64_t> dummy_sizes(const SizeRelations& relations, DummySizes& sizes) {
  auto count = static_cast<int64_t>(sizes.chosen.size());
  const auto made = relations.sizes(sizes.chosen, [&](const std::string&, SizeRelations::Range range) {
    const int64_t least = std::max({range.least, sizes.others, int64_t{1}});
    const int64_t more = sizes.shift + sizes.step * count++;
    return least < range.most && more < range.most - least ? least + more : range.most;
  });
  SCONCE_CHECK(made, kUnsupported, "no sizes were found that the package's relations allow");
  return *made;
}

}  // namespace

std::vector<Tensor> dummy_inputs(std::span<const TensorSpec> specs, DummySizes sizes,
                                 std::span<const std::string> names) {
  const std::vector<int64_t> made = dummy_sizes(SizeRelations(specs, sizes.bounds), sizes);
  auto next = made.begin();
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
    for (const Dim& dim : spec.dims) {
      shape.push_back(dim.is_static() ? dim.min : *next++);
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
