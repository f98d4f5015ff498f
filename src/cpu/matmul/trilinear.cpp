// Sums of products of three tensors. Matches aten::_trilinear (torch 2.15, CPU), which is torch.nn.Bilinear.
#include "src/tensor/matrices/trilinear.h"

#include "src/cpu/matmul/products.h"
#include "src/operators/cpu_ops.h"

namespace sconce::cpu {

// Every operand gets a dimension of size 1 at its `expand` places (of the result's dimensions, ascending); the
// broadcast product is summed over sumdim. Any strides, numeric dtypes, halves summed in float; row-major. unroll_dim
// is a hint that is not needed. kInvalidArgument where dimensions do not fit.
Tensor _trilinear(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntSpan expand1, IntSpan expand2,
                  IntSpan expand3, IntSpan sumdim, int64_t) {
  return trilinear_by(bmm, i1, i2, i3, expand1, expand2, expand3, sumdim);
}

}  // namespace sconce::cpu
