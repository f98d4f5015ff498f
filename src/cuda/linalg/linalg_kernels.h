// Small kernels in addition to the linear algebra libraries, for host code. dtype: c10::ScalarType 6, 7, 9 or 10.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// Writes base, base + step, ...
void launch_addresses(void** addresses, void* base, int64_t step_bytes, int64_t count, cudaStream_t stream);
void launch_narrow(const int64_t* from, int32_t* to, int64_t count, cudaStream_t stream);
void launch_conjugate(void* numbers, int dtype, int64_t count, cudaStream_t stream);

// Copies a part of matrices; steps in elements. `to` and `from` may be the same.
struct Part {
  enum Kind {
    kUpper,      // keeps the diagonal and above, zeros below
    kLower,      // keeps the diagonal and below, zeros above
    kUnitLower,  // keeps what is below, ones on the diagonal, zeros above
    kAll,
  } kind;
  int64_t count, rows, columns;
  int64_t to_matrix, to_row, to_column;
  int64_t from_matrix, from_row, from_column;
};
void launch_part(const Part& part, void* to, const void* from, int dtype, cudaStream_t stream);

// Exchanges rows by LAPACK's pivots (from 1), in their order or backwards, of column-major [rows, columns] matrices
// with `pivot_count` pivots each.
void launch_exchange_rows(void* matrices, int dtype, int64_t count, int64_t rows, int64_t columns,
                          const int32_t* pivots, int64_t pivot_count, bool backwards, cudaStream_t stream);
// Writes the row-major [m, m] P of P L U for each row of pivots; `order` is scratch of count * m.
void launch_permutations(const int32_t* pivots, int64_t count, int64_t m, int64_t pivot_count, int32_t* order,
                         void* matrices, int dtype, cudaStream_t stream);
// Writes 1, 2, ... in each row.
void launch_plain_pivots(int32_t* pivots, int64_t count, int64_t pivot_count, cudaStream_t stream);

// From column-major LU [n, n] and pivots: the determinant or, if `logarithm` (real) is given, its sign and the
// logarithm of its absolute value.
void launch_determinant(const void* lu, const int32_t* pivots, int64_t count, int64_t n, void* result, void* logarithm,
                        int dtype, cudaStream_t stream);

// Inverts ordered float32 or float64 values (dtype 6 or 7), `length` per matrix: those above max(ratio * the largest,
// floor) in magnitude; others give 0. floors, ratios: one per matrix. Null floors: none. `ratio` is used where ratios
// is null and there is no floor above 0.
void launch_inverses(const void* values, void* inverses, int dtype, int64_t count, int64_t length, const double* floors,
                     const double* ratios, double ratio, cudaStream_t stream);

}  // namespace sconce::cuda
