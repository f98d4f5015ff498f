#include "src/cpu/matmul/trilinear.h"

#include "src/cpu/matmul/products.h"
#include "src/tensor/matrices/trilinear.h"

namespace sconce::cpu {

Tensor _trilinear(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntSpan expand1, IntSpan expand2,
                  IntSpan expand3, IntSpan sumdim, int64_t) {
  return trilinear_by(bmm, i1, i2, i3, expand1, expand2, expand3, sumdim);
}

}  // namespace sconce::cpu
