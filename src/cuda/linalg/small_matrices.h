// Decompositions of matrices that fit in a block's shared memory, one block per matrix and one launch for all; for
// host code. Matrices are column-major and packed, one after the other. dtype: c10::ScalarType 6, 7, 9 or 10.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

inline constexpr int64_t kMaxSmallSize = 64, kMaxSmallBytes = 96 << 10;

inline bool small_lu_fits(int64_t rows, int64_t columns, int64_t itemsize) {
  return rows <= kMaxSmallSize && columns <= kMaxSmallSize && rows * columns * itemsize <= kMaxSmallBytes / 2;
}
// LU of [rows, columns] matrices as LAPACK's getrf writes it: the first of the largest elements becomes the pivot.
struct SmallLu {
  const void* from;
  bool from_rows;  // `from` is row-major
  void* to;        // may be `from` if that is not row-major
  int dtype;
  int64_t count;
  int rows, columns;
  int32_t* pivots;  // from 1; null: no rows are exchanged
  int32_t* info;    // the first zero pivot, from 1, or 0
  bool by_length;   // complex numbers are compared by magnitude, else by the sum of their parts
};
// As cuBLAS, which ATen calls for these; cuSOLVER, which it calls for others, does as LAPACK does.
inline bool pivots_by_length(int64_t count, int64_t rows, int64_t columns) { return count > 1 && rows == columns; }
void launch_small_lu(const SmallLu& lu, cudaStream_t stream);

// `all`: left vectors beyond `columns` are wanted too.
inline bool small_svd_fits(int64_t rows, int64_t columns, int64_t itemsize, bool all) {
  return columns <= rows && columns <= kMaxSmallSize && (!all || rows <= kMaxSmallSize) &&
         (rows + columns) * columns * itemsize <= kMaxSmallBytes;
}
// A = U S V^H of [rows, columns] matrices with rows >= columns.
struct SmallSvd {
  const void* matrices;
  int dtype;
  int64_t count;
  int rows, columns;
  void* values;      // real [count, columns], descending
  void* left;        // column by column; null: no vectors
  int left_columns;  // `columns` or `rows`
  void* right;       // [columns, columns], column by column
  bool conjugates_left, conjugates_right;
  int32_t* info;  // 1 for matrices with an infinite number or NaN, and for those that do not converge; else 0
};
void launch_small_svd(const SmallSvd& svd, cudaStream_t stream);

}  // namespace sconce::cuda
