// Matrix products of integers: as gemm.h, for uint8, int8, int16, int32 and int64. Arithmetic wraps; alpha and beta
// are truncated to the dtype, kInvalidArgument if they do not fit.
#pragma once

#include "src/cpu/matmul/gemm/gemm.h"

namespace sconce {

void integer_matrix_product(const char* name, const MatrixProduct& product);

// c[m, n] of int32 from a[m, k] of int8 or uint8 and b[k, n] of int8.
void int8_matrix_product(bool a_is_signed, const MatrixProduct& product);

}  // namespace sconce
