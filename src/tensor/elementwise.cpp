#include "src/tensor/elementwise.h"

#include <vector>

#include "src/tensor/copy.h"

namespace sconce {

Tensor make_result(std::string_view name, std::initializer_list<const Tensor*> operands, DType computed, DType result) {
  Shape sizes((*operands.begin())->sizes());
  for (const Tensor* t : operands) sizes = broadcast_shapes(name, sizes, t->sizes());
  std::array<const Tensor*, 4> as_met{};
  std::array<Tensor, 4> converted;
  size_t n = 0;
  for (const Tensor* t : operands) {
    as_met[n] = t;
    // ATen converts such an operand first, into a tensor without gaps, whose strides then count.
    if (t->dtype() != computed && t->dim() > 0 && !t->is_dense()) {
      converted[n] = empty_like(*t, computed);
      as_met[n] = &converted[n];
    }
    ++n;
  }
  return Tensor::empty_strided(sizes, elementwise_strides(sizes, {as_met.data(), n}), result);
}

}  // namespace sconce
