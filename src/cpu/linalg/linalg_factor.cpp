// Cholesky, QR, eigenvalues of symmetric matrices, singular values, LDL.
#include <algorithm>
#include <cstdlib>

#include "sconce/check.h"
#include "src/cpu/linalg/lapack_calls.h"
#include "src/cpu/linalg/linalg.h"
#include "src/tensor/copy.h"
#include "src/tensor/factory.h"
#include "src/tensor/fill.h"
#include "src/tensor/matrices/linalg_errors.h"
#include "src/tensor/matrices/matrix_batch.h"

namespace sconce::cpu {
namespace {

// Clears what is not in the triangle of a column-major matrix.
template <class T>
void keep_triangle(T* a, int64_t m, int64_t n, bool upper) {
  for (int64_t c = 0; c < n; ++c) {
    T* const column = a + c * m;
    std::fill(column + (upper ? std::min(c + 1, m) : 0), column + (upper ? m : std::min(c, m)), T(0));
  }
}

// Q of k reflectors that lie below the diagonal of a [m, n] matrix.
template <class T>
void make_q(Tensor& q, int m, int n, int k, const T* tau, int64_t tau_step) {
  T answer{};
  int info = 0;
  Lapack<T>::orgqr(m, n, k, q.data_as<T>(), tau, &answer, -1, info);
  const int lwork = std::max(workspace_size(answer), 1);
  const Workspace<T> work(lwork);
  const int64_t count = q.numel() / (int64_t{m} * n);
  for (int64_t i = 0; i < count; ++i)
    Lapack<T>::orgqr(m, n, k, q.data_as<T>() + i * m * n, tau + i * tau_step, work.data(), lwork, info);
}

}  // namespace

std::array<Tensor, 2> linalg_cholesky_ex(const Tensor& self, bool upper, bool check_errors) {
  check_square("linalg.cholesky", self);
  const int n = int_size("linalg.cholesky", self.size(self.dim() - 1));
  Tensor l = column_major_copy(self), info = Tensor::empty(batch_shape(self), DType::kInt32);
  zero(info);
  if (l.numel() > 0)
    dispatch_lapack(self.dtype(), "linalg.cholesky", [&]<class T>() -> void {
      for (int64_t i = 0; i < info.numel(); ++i) {
        T* const a = l.data_as<T>() + i * n * n;
        Lapack<T>::potrf(upper ? 'U' : 'L', n, a, info.data_as<int32_t>()[i]);
        keep_triangle(a, n, n, upper);
      }
    });
  if (check_errors) _linalg_check_errors(info, "linalg.cholesky_ex", self.dim() == 2);
  return {l, info};
}

std::array<Tensor, 2> linalg_qr(const Tensor& A, std::string_view mode) {
  check_matrices("linalg.qr", A);
  check_qr_mode(mode);
  const int m = int_size("linalg.qr", A.size(A.dim() - 2)), n = int_size("linalg.qr", A.size(A.dim() - 1));
  const int k = std::min(m, n);
  const bool complete = mode == "complete";
  const Shape batch = batch_shape(A);
  const int64_t count = count_of(batch);
  Tensor q = mode == "r" ? no_matrix(A.dtype()) : empty_matrices(with_matrix(batch, m, complete ? m : k), A.dtype());
  Tensor r = empty_matrices(with_matrix(batch, complete ? m : k, n), A.dtype());
  zero(r);
  if (mode != "r") zero(q);
  if (A.numel() == 0) {
    if (complete && q.numel() > 0) fill_identity(q);  // there are no columns
    return {q, r};
  }
  const Tensor factored = column_major_copy(A);
  dispatch_lapack(A.dtype(), "linalg.qr", [&]<class T>() -> void {
    const Workspace<T> tau(count * k);
    T answer{};
    int info = 0;
    Lapack<T>::geqrf(m, n, factored.data_as<T>(), tau.data(), &answer, -1, info);
    const int lwork = std::max(workspace_size(answer), 1), rows = complete ? m : k;
    const Workspace<T> work(lwork);
    for (int64_t i = 0; i < count; ++i) {
      T* const a = factored.data_as<T>() + i * m * n;
      Lapack<T>::geqrf(m, n, a, tau.data() + i * k, work.data(), lwork, info);
      for (int64_t c = 0; c < n; ++c)
        std::copy_n(a + c * m, std::min<int64_t>(c + 1, k), r.data_as<T>() + (i * n + c) * rows);
      if (mode == "r") continue;
      const int64_t columns = complete ? m : k;
      std::copy_n(a, int64_t{m} * k, q.data_as<T>() + i * m * columns);
    }
    if (mode != "r") make_q<T>(q, m, complete ? m : k, k, tau.data(), k);
  });
  return {q, r};
}

Tensor linalg_householder_product(const Tensor& input, const Tensor& tau) {
  const char* const name = "torch.linalg.householder_product";
  check_householder(name, input, tau);
  const int m = int_size(name, input.size(input.dim() - 2)), n = int_size(name, input.size(input.dim() - 1));
  Tensor out = column_major_copy(input);
  if (out.numel() == 0) return out;
  const Tensor packed = contiguous(tau);
  const int k = int_size(name, tau.size(tau.dim() - 1));
  dispatch_lapack(input.dtype(), name, [&]<class T>() -> void { make_q<T>(out, m, n, k, packed.data_as<T>(), k); });
  return out;
}

std::array<Tensor, 2> _linalg_eigh(const Tensor& A, std::string_view UPLO, bool compute_v) {
  check_square("linalg.eigh", A);
  const char uplo = reads_lower(UPLO) ? 'L' : 'U', job = compute_v ? 'V' : 'N';
  const int n = int_size("linalg.eigh", A.size(A.dim() - 1));
  const Shape batch = batch_shape(A);
  Tensor values = Tensor::empty(with_last(batch, n), value_dtype(A.dtype())), vectors = column_major_copy(A);
  Tensor infos = Tensor::empty(batch, DType::kInt32);
  zero(infos);
  if (A.numel() > 0)
    dispatch_lapack(A.dtype(), "linalg.eigh", [&]<class T>() -> void {
      using R = typename Lapack<T>::Real;
      T answer{};
      R real_answer{};
      int int_answer = 0, info = 0;
      Lapack<T>::heevd(job, uplo, n, vectors.data_as<T>(), values.data_as<R>(), &answer, -1, &real_answer, -1,
                       &int_answer, -1, info);
      const int lwork = std::max(workspace_size(answer), 1), lrwork = std::max(workspace_size(real_answer), 1),
                liwork = std::max(int_answer, 1);
      const Workspace<T> work(lwork);
      const Workspace<R> rwork(lrwork);
      const Workspace<int> iwork(liwork);
      for (int64_t i = 0; i < infos.numel(); ++i)
        Lapack<T>::heevd(job, uplo, n, vectors.data_as<T>() + i * n * n, values.data_as<R>() + i * n, work.data(),
                         lwork, rwork.data(), lrwork, iwork.data(), liwork, infos.data_as<int32_t>()[i]);
    });
  _linalg_check_errors(infos, "linalg.eigh", A.dim() == 2);
  return {values, compute_v ? vectors : no_matrix(A.dtype())};
}

std::array<Tensor, 3> _linalg_svd(const Tensor& A, bool full_matrices, bool compute_uv,
                                  std::optional<std::string_view> driver) {
  check_matrices("linalg.svd", A);
  SCONCE_CHECK(!driver, kInvalidArgument, "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs");
  const int m = int_size("linalg.svd", A.size(A.dim() - 2)), n = int_size("linalg.svd", A.size(A.dim() - 1));
  const int k = std::min(m, n);
  const Shape batch = batch_shape(A);
  const int64_t count = count_of(batch);
  Tensor s = Tensor::empty(with_last(batch, k), value_dtype(A.dtype()));
  Tensor u =
      compute_uv ? empty_matrices(with_matrix(batch, m, full_matrices ? m : k), A.dtype()) : no_matrix(A.dtype());
  Tensor vh =
      compute_uv ? empty_matrices(with_matrix(batch, full_matrices ? n : k, n), A.dtype()) : no_matrix(A.dtype());
  if (A.numel() == 0) {
    // If the matrix has no elements, the full bases are identities.
    for (Tensor* full : {&u, &vh})
      if (compute_uv && full_matrices && full->numel() > 0) fill_identity(*full);
    return {u, s, vh};
  }
  const Tensor copied = column_major_copy(A);
  Tensor infos = Tensor::empty(batch, DType::kInt32);
  const char job = !compute_uv ? 'N' : full_matrices ? 'A' : 'S';
  dispatch_lapack(A.dtype(), "linalg.svd", [&]<class T>() -> void {
    using R = typename Lapack<T>::Real;
    const int ldvt = full_matrices ? n : k;
    const int64_t longer = std::max(m, n), shorter = k;
    const Workspace<R> rwork(kIsComplex<T> ? std::max(5 * shorter * shorter + 5 * shorter,
                                                      2 * longer * shorter + 2 * shorter * shorter + shorter)
                                           : 1);
    const Workspace<int> iwork(8 * shorter);
    T answer{};
    int info = 0;
    Lapack<T>::gesdd(job, m, n, copied.data_as<T>(), s.data_as<R>(), u.data_as<T>(), vh.data_as<T>(), ldvt, &answer, -1,
                     rwork.data(), iwork.data(), info);
    const int lwork = std::max(workspace_size(answer), 1);
    const Workspace<T> work(lwork);
    const int64_t u_step = compute_uv ? int64_t{m} * (full_matrices ? m : k) : 0,
                  v_step = compute_uv ? int64_t{ldvt} * n : 0;
    for (int64_t i = 0; i < count; ++i)
      Lapack<T>::gesdd(job, m, n, copied.data_as<T>() + i * m * n, s.data_as<R>() + i * k, u.data_as<T>() + i * u_step,
                       vh.data_as<T>() + i * v_step, ldvt, work.data(), lwork, rwork.data(), iwork.data(),
                       infos.data_as<int32_t>()[i]);
  });
  _linalg_check_errors(infos, "linalg.svd", A.dim() == 2);
  return {u, s, vh};
}

std::array<Tensor, 3> linalg_ldl_factor_ex(const Tensor& self, bool hermitian, bool check_errors) {
  check_square("torch.linalg.ldl_factor_ex", self);
  const int n = int_size("linalg.ldl_factor", self.size(self.dim() - 1));
  const Shape batch = batch_shape(self);
  Tensor ld = column_major_copy(self), pivots = Tensor::empty(with_last(batch, n), DType::kInt32),
         info = Tensor::empty(batch, DType::kInt32);
  zero(info);
  if (self.numel() > 0)
    dispatch_lapack(self.dtype(), "linalg.ldl_factor", [&]<class T>() -> void {
      const auto factor = [&](T* a, int32_t* pivot, T* work, int lwork, int& status) {
        if constexpr (kIsComplex<T>)
          if (hermitian) return Lapack<T>::hetrf(n, a, pivot, work, lwork, status);
        Lapack<T>::sytrf(n, a, pivot, work, lwork, status);
      };
      T answer{};
      int status = 0;
      factor(ld.data_as<T>(), pivots.data_as<int32_t>(), &answer, -1, status);
      const int lwork = std::max(workspace_size(answer), 1);
      const Workspace<T> work(lwork);
      for (int64_t i = 0; i < info.numel(); ++i) {
        keep_triangle(ld.data_as<T>() + i * n * n, n, n, false);
        factor(ld.data_as<T>() + i * n * n, pivots.data_as<int32_t>() + i * n, work.data(), lwork,
               info.data_as<int32_t>()[i]);
      }
    });
  if (check_errors) _linalg_check_errors(info, "torch.linalg.ldl_factor_ex", self.dim() == 2);
  return {ld, pivots, info};
}

Tensor linalg_ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) {
  const char* const name = "torch.linalg.ldl_solve";
  check_square(name, LD);
  SCONCE_CHECK(B.dim() >= 2 && B.dtype() == LD.dtype() && B.size(B.dim() - 2) == LD.size(LD.dim() - 1),
               kInvalidArgument, name, ": B ", describe(B), " does not go with LD ", describe(LD));
  SCONCE_CHECK(pivots.dtype() == DType::kInt32 && pivots.dim() == LD.dim() - 1 &&
                   std::equal(pivots.sizes().begin(), pivots.sizes().end(), LD.sizes().begin()),
               kInvalidArgument, name, ": pivots ", describe(pivots), " do not go with LD ", describe(LD));
  const int n = int_size(name, LD.size(LD.dim() - 1)), columns = int_size(name, B.size(B.dim() - 1));
  const Shape batch = broadcast_shapes(name, batch_shape(LD), batch_shape(B));
  const Tensor ld = column_major_copy(sconce::expand(name, LD, with_matrix(batch, n, n)));
  const Tensor p = contiguous(sconce::expand(name, pivots, with_last(batch, n)));
  for (int64_t i = 0; i < p.numel(); ++i)
    SCONCE_CHECK(p.data_as<int32_t>()[i] != 0 && std::abs(p.data_as<int32_t>()[i]) <= n, kInvalidArgument, name,
                 ": pivot ", p.data_as<int32_t>()[i], " of a matrix of size ", n);
  Tensor out = column_major_copy(sconce::expand(name, B, with_matrix(batch, n, columns)));
  if (out.numel() == 0) return out;
  dispatch_lapack(LD.dtype(), name, [&]<class T>() -> void {
    for (int64_t i = 0, count = count_of(batch); i < count; ++i) {
      int info = 0;
      const T* const a = ld.data_as<T>() + i * n * n;
      T* const b = out.data_as<T>() + i * n * columns;
      const int32_t* const pivot = p.data_as<int32_t>() + i * n;
      if constexpr (kIsComplex<T>)
        if (hermitian) {
          Lapack<T>::hetrs(n, columns, a, pivot, b, info);
          continue;
        }
      Lapack<T>::sytrs(n, columns, a, pivot, b, info);
    }
  });
  return out;
}

}  // namespace sconce::cpu
