// Matrix products in addition to those of op_table.def.
//
// Both kinds take any strides, write `out` in its layout, and compute in the operands' dtype (float for the small
// floats). With beta 0 self is not read; it is broadcast to the result. As in ATen (torch 2.15), alpha 0 skips the
// product for float, double and complex, so its NaNs do not count. kInvalidArgument: ranks, shapes, dtypes, an `out`
// that overlaps itself; kUnsupported: dtypes that ATen refuses.
#pragma once

#include "sconce/tensor.h"

namespace sconce::cpu {

// out[m, n] = a @ b + c @ d; the first product is rounded to out's dtype. Matches aoti_torch__mm_plus_mm_out.
void mm_plus_mm_out(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d);

}  // namespace sconce::cpu
