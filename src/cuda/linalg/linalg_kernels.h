// What the libraries of linear algebra leave to do, for host code. dtype: c10::ScalarType, 6, 7, 9 or 10.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// base, base + step, ...
void launch_addresses(void** addresses, void* base, int64_t step_bytes, int64_t count, cudaStream_t stream);
void launch_narrow(const int64_t* from, int32_t* to, int64_t count, cudaStream_t stream);
void launch_conjugate(void* numbers, int dtype, int64_t count, cudaStream_t stream);

// A part of matrices; steps in elements. from and to may be the same.
struct Part {
  enum Kind {
    kUpper,      // on and above the diagonal, zeros below
    kLower,      // on and below, zeros above
    kUnitLower,  // below, ones on the diagonal, zeros above
    kAll,
  } kind;
  int64_t count, rows, columns;
  int64_t to_matrix, to_row, to_column;
  int64_t from_matrix, from_row, from_column;
};
void launch_part(const Part& part, void* to, const void* from, int dtype, cudaStream_t stream);

// Exchanges rows as LAPACK's pivots (from 1) say, in their order or backwards; column-major [rows, columns] matrices
// with `pivot_count` pivots each.
void launch_exchange_rows(void* matrices, int dtype, int64_t count, int64_t rows, int64_t columns,
                          const int32_t* pivots, int64_t pivot_count, bool backwards, cudaStream_t stream);
// [m, m] row-major P of P L U for each row of pivots; `order` is scratch of count * m.
void launch_permutations(const int32_t* pivots, int64_t count, int64_t m, int64_t pivot_count, int32_t* order,
                         void* matrices, int dtype, cudaStream_t stream);
// 1, 2, ... in each row.
void launch_plain_pivots(int32_t* pivots, int64_t count, int64_t pivot_count, cudaStream_t stream);

// Of column-major LU [n, n] and its pivots: the determinant, or with `logarithm` (real) its sign and the logarithm of
// its absolute value.
void launch_determinant(const void* lu, const int32_t* pivots, int64_t count, int64_t n, void* result, void* logarithm,
                        int dtype, cudaStream_t stream);

// Of ordered float32 or float64 values (dtype 6 or 7), `length` a matrix: the inverses of those whose magnitude is
// above max(ratio * the largest, floor), 0 for others. floors, ratios: one a matrix; null: no floor, and `ratio` where
// there is none above 0.
void launch_inverses(const void* values, void* inverses, int dtype, int64_t count, int64_t length, const double* floors,
                     const double* ratios, double ratio, cudaStream_t stream);

}  // namespace sconce::cuda
