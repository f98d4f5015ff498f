// cuSOLVER and cuBLAS for batches of matrices: handles, and functions that take a dtype where theirs have a letter.
// Matrices are column-major and packed, one after the other (src/tensor/matrices/matrix_batch.h), on the thread's
// current device.
#pragma once

#include <cublas_v2.h>
#include <cusolverDn.h>

#include <string_view>

#include "sconce/tensor.h"
#include "src/cuda/runtime/stream.h"

namespace sconce::cuda {

// Opens the libraries and makes the tensor's device current. Throws kUnsupported while a graph is recorded.
class LinalgScope {
 public:
  LinalgScope(std::string_view name, const Tensor& tensor);

 private:
  DeviceScope scope_;
};

enum class Side { kLeft, kRight };
enum class Triangle { kLower, kUpper };
enum class Form { kPlain, kTransposed, kAdjoint };

// `count` matrices [rows, columns] at data.
struct Matrices {
  void* data;
  int64_t count, rows, columns;
  DType dtype;
  Device device;

  explicit Matrices(const Tensor& t)
      : data(t.data()), rows(t.size(t.dim() - 2)), columns(t.size(t.dim() - 1)), dtype(t.dtype()), device(t.device()) {
    count = rows * columns == 0 ? 0 : t.numel() / (rows * columns);
  }
  Matrices(void* at, int64_t n, int64_t m, int64_t k, const Tensor& like)
      : data(at), count(n), rows(m), columns(k), dtype(like.dtype()), device(like.device()) {}
};

// Solves op(a) X = b or, with side right, X op(a) = b for square a; X overwrites b.
void solve_triangular(const Matrices& a, const Matrices& b, Side side, Triangle triangle, Form form, bool unit);
// Each overwrites `a`. info: int32, one per matrix. pivots: int32 from 1; null: no pivoting. Small matrices by our own
// kernel.
void factor_lu(const Matrices& a, int32_t* pivots, int32_t* info);
void factor_cholesky(const Matrices& a, Triangle triangle, int32_t* info);
void factor_qr(const Matrices& a, void* tau);
// Makes Q from its reflectors; tau_step numbers per matrix.
void make_q(const Matrices& a, const void* tau, int64_t reflectors, int64_t tau_step);
// b becomes op(Q) b or b op(Q); a [order, >= reflectors] holds Q's reflectors.
void apply_q(const Matrices& a, const void* tau, int64_t reflectors, const Matrices& b, Side side, Form form);
// Ascending eigenvalues of symmetric or Hermitian matrices, reading one triangle; vectors overwrite a.
void eigen_symmetric(const Matrices& a, Triangle triangle, bool vectors, void* values, int32_t* info);
// For complex matrices; overwrites a. vectors: null if not wanted.
void eigen_general(const Matrices& a, void* values, void* vectors, int32_t* info);
// a [m, n] with m >= n is overwritten. job: 'N', 'S' or 'A'; vt [n, n].
void singular_values(const Matrices& a, char job, void* s, void* u, void* vt, int32_t* info);

}  // namespace sconce::cuda
