#include "src/cuda/linalg/linalg_library.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "src/cuda/linalg/linalg_kernels.h"
#include "src/cuda/linalg/small_matrices.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/handle.h"
#include "src/cuda/runtime/per_device.h"
#include "src/cuda/runtime/scratch.h"
#include "src/device/lazy_library.h"
#include "src/tensor/matrices/matrix_batch.h"

SCONCE_LAZY_LIBRARY(cusolver);
SCONCE_LAZY_LIBRARY(cublas);

namespace sconce::cuda {
namespace {

void check_solver(cusolverStatus_t status, const char* expression) {
  SCONCE_CHECK(status != CUSOLVER_STATUS_ALLOC_FAILED, kOutOfMemory, expression, ": cuSOLVER has no memory");
  SCONCE_CHECK(status == CUSOLVER_STATUS_SUCCESS, kDevice, expression, ": cuSOLVER error ", static_cast<int>(status));
}
void check_blas(cublasStatus_t status, const char* expression) {
  SCONCE_CHECK(status != CUBLAS_STATUS_ALLOC_FAILED, kOutOfMemory, expression, ": cuBLAS has no memory");
  SCONCE_CHECK(status == CUBLAS_STATUS_SUCCESS, kDevice, expression, ": cuBLAS error ", static_cast<int>(status));
}
#define SCONCE_SOLVER(expression) check_solver((expression), #expression)
#define SCONCE_BLAS(expression) check_blas((expression), #expression)

// One per thread and device, because a handle serves one stream at a time.
struct Solver {
  Handle<cusolverDnHandle_t, cusolverDnDestroy> handle;
  Handle<cusolverDnParams_t, cusolverDnDestroyParams> params;
};
Solver& solver() {
  static thread_local PerDevice<Solver> all;
  Solver& mine = all[current().device];
  if (!mine.handle.value) SCONCE_SOLVER(cusolverDnCreate(&mine.handle.value));
  if (!mine.params.value) SCONCE_SOLVER(cusolverDnCreateParams(&mine.params.value));
  SCONCE_SOLVER(cusolverDnSetStream(mine.handle.value, current_stream()));
  return mine;
}
cublasHandle_t blas() {
  static thread_local PerDevice<Handle<cublasHandle_t, cublasDestroy_v2>> all;
  auto& handle = all[current().device].value;
  if (!handle) SCONCE_BLAS(cublasCreate_v2(&handle));
  SCONCE_BLAS(cublasSetStream_v2(handle, current_stream()));
  return handle;
}

// The workspaces that a function of cuSOLVER requests on the device and on the host.
struct Workspaces {
  size_t device_bytes = 0, host_bytes = 0;
  Tensor device;
  std::vector<std::byte> host;
  void allocate(Device where) {
    device = scratch(device_bytes, where);
    host.resize(host_bytes);
  }
};

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDA_R_32F;
    case DType::kFloat64:
      return CUDA_R_64F;
    case DType::kComplex64:
      return CUDA_C_32F;
    default:
      return CUDA_C_64F;
  }
}
cudaDataType_t real_type_of(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kComplex64 ? CUDA_R_32F : CUDA_R_64F;
}
size_t real_bytes(DType dtype) { return dtype_bytes(dtype) / (is_complex(dtype) ? 2 : 1); }

template <class F>
void by_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kComplex64:
      return f(cuComplex{});
    default:
      return f(cuDoubleComplex{});
  }
}
template <class T>
constexpr auto pick(auto s, auto d, auto c, auto z) {
  if constexpr (std::is_same_v<T, float>)
    return s;
  else if constexpr (std::is_same_v<T, double>)
    return d;
  else if constexpr (std::is_same_v<T, cuComplex>)
    return c;
  else
    return z;
}
template <class T>
T one() {
  if constexpr (std::is_floating_point_v<T>)
    return 1;
  else
    return T{1, 0};
}

cublasFillMode_t fill_of(Triangle triangle) {
  return triangle == Triangle::kUpper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}
cublasSideMode_t side_of(Side side) { return side == Side::kLeft ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT; }
cublasOperation_t operation_of(Form form) {
  return form == Form::kPlain ? CUBLAS_OP_N : form == Form::kTransposed ? CUBLAS_OP_T : CUBLAS_OP_C;
}

// An array of the matrices' addresses, on the device.
struct Addresses {
  explicit Addresses(const Matrices& m) : memory(scratch(static_cast<size_t>(m.count) * sizeof(void*), m.device)) {
    launch_addresses(memory.data_as<void*>(), m.data, m.rows * m.columns * static_cast<int64_t>(dtype_bytes(m.dtype)),
                     m.count, current_stream());
    SCONCE_CUDA(cudaGetLastError());
  }
  template <class T>
  T** as() const {
    return static_cast<T**>(memory.data());
  }
  Tensor memory;
};

char* matrix_at(const Matrices& m, int64_t i) {
  return static_cast<char*>(m.data) + i * m.rows * m.columns * static_cast<int64_t>(dtype_bytes(m.dtype));
}

// Larger matrices are as fast one after the other as in a batch.
constexpr int64_t kBatchedSize = 512, kBatchedRows = 256;

}  // namespace

LinalgScope::LinalgScope(std::string_view name, const Tensor& tensor) : scope_(tensor.device()) {
  SCONCE_CHECK(!tensor.is_cpu(), kInvalidArgument, name, ": ", describe(tensor), " is not on a CUDA device");
  refuse_capture("linear algebra by cuSOLVER");
  require_library(sconce_lazy_cusolver);
  require_library(sconce_lazy_cublas);
}

void solve_triangular(const Matrices& a, const Matrices& b, Side side, Triangle triangle, Form form, bool unit) {
  if (b.count == 0 || b.rows * b.columns == 0) return;
  const int m = int_size("triangular systems", b.rows), n = int_size("triangular systems", b.columns);
  const int lda = int_size("triangular systems", a.rows), count = int_size("triangular systems", b.count);
  const cublasDiagType_t diagonal = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  by_type(a.dtype, [&](auto sample) {
    using T = decltype(sample);
    const T alpha = one<T>();
    if (count == 1) {
      const auto solve = pick<T>(cublasStrsm_v2, cublasDtrsm_v2, cublasCtrsm_v2, cublasZtrsm_v2);
      SCONCE_BLAS(solve(blas(), side_of(side), fill_of(triangle), operation_of(form), diagonal, m, n, &alpha,
                        static_cast<const T*>(a.data), lda, static_cast<T*>(b.data), m));
      return;
    }
    const auto solve = pick<T>(cublasStrsmBatched, cublasDtrsmBatched, cublasCtrsmBatched, cublasZtrsmBatched);
    const Addresses from(a), to(b);
    SCONCE_BLAS(solve(blas(), side_of(side), fill_of(triangle), operation_of(form), diagonal, m, n, &alpha,
                      from.as<const T>(), lda, to.as<T>(), m, count));
  });
}

void factor_lu(const Matrices& a, int32_t* pivots, int32_t* info) {
  if (a.count == 0) return;
  const int64_t k = std::min(a.rows, a.columns);
  if (small_lu_fits(a.rows, a.columns, static_cast<int64_t>(dtype_bytes(a.dtype)))) {
    launch_small_lu({a.data, false, a.data, static_cast<int>(a.dtype), int_size("linalg.lu_factor", a.count),
                     static_cast<int>(a.rows), static_cast<int>(a.columns), pivots, info,
                     pivots_by_length(a.count, a.rows, a.columns)},
                    current_stream());
    SCONCE_CUDA(cudaGetLastError());
    return;
  }
  if (a.count > 1 && a.rows == a.columns && k <= kBatchedSize) {
    const Addresses addresses(a);
    by_type(a.dtype, [&](auto sample) {
      using T = decltype(sample);
      const auto factor = pick<T>(cublasSgetrfBatched, cublasDgetrfBatched, cublasCgetrfBatched, cublasZgetrfBatched);
      SCONCE_BLAS(factor(blas(), static_cast<int>(k), addresses.as<T>(), static_cast<int>(k), pivots, info,
                         int_size("linalg.lu_factor", a.count)));
    });
    return;
  }
  Solver& by = solver();
  const cudaDataType_t type = type_of(a.dtype);
  Workspaces work;
  SCONCE_SOLVER(cusolverDnXgetrf_bufferSize(by.handle.value, by.params.value, a.rows, a.columns, type, a.data, a.rows,
                                            type, &work.device_bytes, &work.host_bytes));
  work.allocate(a.device);
  Tensor wide = scratch(static_cast<size_t>(a.count * k) * sizeof(int64_t), a.device);
  for (int64_t i = 0; i < a.count; ++i)
    SCONCE_SOLVER(cusolverDnXgetrf(by.handle.value, by.params.value, a.rows, a.columns, type, matrix_at(a, i), a.rows,
                                   pivots ? wide.data_as<int64_t>() + i * k : nullptr, type, work.device.data(),
                                   work.device_bytes, work.host.data(), work.host_bytes, info + i));
  if (pivots) launch_narrow(wide.data_as<int64_t>(), pivots, a.count * k, current_stream());
  SCONCE_CUDA(cudaGetLastError());
}

void factor_cholesky(const Matrices& a, Triangle triangle, int32_t* info) {
  if (a.count == 0) return;
  Solver& by = solver();
  if (a.count > 1 && a.rows <= kBatchedSize) {
    const Addresses addresses(a);
    by_type(a.dtype, [&](auto sample) {
      using T = decltype(sample);
      const auto factor =
          pick<T>(cusolverDnSpotrfBatched, cusolverDnDpotrfBatched, cusolverDnCpotrfBatched, cusolverDnZpotrfBatched);
      SCONCE_SOLVER(factor(by.handle.value, fill_of(triangle), static_cast<int>(a.rows), addresses.as<T>(),
                           static_cast<int>(a.rows), info, int_size("linalg.cholesky", a.count)));
    });
    return;
  }
  const cudaDataType_t type = type_of(a.dtype);
  Workspaces work;
  SCONCE_SOLVER(cusolverDnXpotrf_bufferSize(by.handle.value, by.params.value, fill_of(triangle), a.rows, type, a.data,
                                            a.rows, type, &work.device_bytes, &work.host_bytes));
  work.allocate(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    SCONCE_SOLVER(cusolverDnXpotrf(by.handle.value, by.params.value, fill_of(triangle), a.rows, type, matrix_at(a, i),
                                   a.rows, type, work.device.data(), work.device_bytes, work.host.data(),
                                   work.host_bytes, info + i));
}

void factor_qr(const Matrices& a, void* tau) {
  if (a.count == 0) return;
  // The batched call takes as long as a few single ones, and as more of those the larger they are.
  if (a.rows <= kBatchedRows && a.count >= std::max<int64_t>(8, a.rows / 6)) {
    const int m = static_cast<int>(a.rows), n = int_size("linalg.qr", a.columns);
    Matrices taus = a;
    taus.data = tau;
    taus.rows = std::min(a.rows, a.columns);
    taus.columns = 1;
    const Addresses addresses(a), factors(taus);
    by_type(a.dtype, [&](auto sample) {
      using T = decltype(sample);
      const auto factor = pick<T>(cublasSgeqrfBatched, cublasDgeqrfBatched, cublasCgeqrfBatched, cublasZgeqrfBatched);
      int info = 0;  // reports bad arguments only
      SCONCE_BLAS(factor(blas(), m, n, addresses.as<T>(), m, factors.as<T>(), &info, int_size("linalg.qr", a.count)));
    });
    return;
  }
  Solver& by = solver();
  const cudaDataType_t type = type_of(a.dtype);
  const int64_t tau_bytes = std::min(a.rows, a.columns) * static_cast<int64_t>(dtype_bytes(a.dtype));
  Workspaces work;
  SCONCE_SOLVER(cusolverDnXgeqrf_bufferSize(by.handle.value, by.params.value, a.rows, a.columns, type, a.data, a.rows,
                                            type, tau, type, &work.device_bytes, &work.host_bytes));
  work.allocate(a.device);
  Tensor info = scratch(sizeof(int), a.device);
  for (int64_t i = 0; i < a.count; ++i)
    SCONCE_SOLVER(cusolverDnXgeqrf(by.handle.value, by.params.value, a.rows, a.columns, type, matrix_at(a, i), a.rows,
                                   type, static_cast<char*>(tau) + i * tau_bytes, type, work.device.data(),
                                   work.device_bytes, work.host.data(), work.host_bytes, info.data_as<int>()));
}

void make_q(const Matrices& a, const void* tau, int64_t reflectors, int64_t tau_step) {
  if (a.count == 0) return;
  const int m = int_size("linalg.qr", a.rows), n = int_size("linalg.qr", a.columns),
            k = int_size("linalg.qr", reflectors);
  by_type(a.dtype, [&](auto sample) {
    using T = decltype(sample);
    const auto ask = pick<T>(cusolverDnSorgqr_bufferSize, cusolverDnDorgqr_bufferSize, cusolverDnCungqr_bufferSize,
                             cusolverDnZungqr_bufferSize);
    const auto make = pick<T>(cusolverDnSorgqr, cusolverDnDorgqr, cusolverDnCungqr, cusolverDnZungqr);
    const cusolverDnHandle_t handle = solver().handle.value;
    int count = 0;
    SCONCE_SOLVER(ask(handle, m, n, k, static_cast<const T*>(a.data), m, static_cast<const T*>(tau), &count));
    Tensor work = scratch(static_cast<size_t>(count) * sizeof(T), a.device), info = scratch(sizeof(int), a.device);
    for (int64_t i = 0; i < a.count; ++i)
      SCONCE_SOLVER(make(handle, m, n, k, reinterpret_cast<T*>(matrix_at(a, i)), m,
                         static_cast<const T*>(tau) + i * tau_step, work.data_as<T>(), count, info.data_as<int>()));
  });
}

void apply_q(const Matrices& a, const void* tau, int64_t reflectors, const Matrices& b, Side side, Form form) {
  if (b.count == 0) return;
  const int m = int_size("ormqr", b.rows), n = int_size("ormqr", b.columns), k = int_size("ormqr", reflectors),
            lda = int_size("ormqr", a.rows);
  by_type(a.dtype, [&](auto sample) {
    using T = decltype(sample);
    const auto ask = pick<T>(cusolverDnSormqr_bufferSize, cusolverDnDormqr_bufferSize, cusolverDnCunmqr_bufferSize,
                             cusolverDnZunmqr_bufferSize);
    const auto apply = pick<T>(cusolverDnSormqr, cusolverDnDormqr, cusolverDnCunmqr, cusolverDnZunmqr);
    // For real numbers, cuSOLVER accepts the adjoint only under the name of transpose.
    const cublasOperation_t operation = form == Form::kPlain          ? CUBLAS_OP_N
                                        : std::is_floating_point_v<T> ? CUBLAS_OP_T
                                                                      : CUBLAS_OP_C;
    const cusolverDnHandle_t handle = solver().handle.value;
    int count = 0;
    SCONCE_SOLVER(ask(handle, side_of(side), operation, m, n, k, static_cast<const T*>(a.data), lda,
                      static_cast<const T*>(tau), static_cast<const T*>(b.data), m, &count));
    Tensor work = scratch(static_cast<size_t>(count) * sizeof(T), a.device), info = scratch(sizeof(int), a.device);
    for (int64_t i = 0; i < b.count; ++i)
      SCONCE_SOLVER(apply(handle, side_of(side), operation, m, n, k, reinterpret_cast<const T*>(matrix_at(a, i)), lda,
                          static_cast<const T*>(tau) + i * k, reinterpret_cast<T*>(matrix_at(b, i)), m,
                          work.data_as<T>(), count, info.data_as<int>()));
  });
}

void eigen_symmetric(const Matrices& a, Triangle triangle, bool vectors, void* values, int32_t* info) {
  if (a.count == 0) return;
  Solver& by = solver();
  const cusolverEigMode_t job = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  const cudaDataType_t type = type_of(a.dtype), real = real_type_of(a.dtype);
  Workspaces work;
  if (a.count > 1 && a.rows <= kBatchedSize) {
    SCONCE_SOLVER(cusolverDnXsyevBatched_bufferSize(by.handle.value, by.params.value, job, fill_of(triangle), a.rows,
                                                    type, a.data, a.rows, real, values, type, &work.device_bytes,
                                                    &work.host_bytes, a.count));
    work.allocate(a.device);
    SCONCE_SOLVER(cusolverDnXsyevBatched(by.handle.value, by.params.value, job, fill_of(triangle), a.rows, type, a.data,
                                         a.rows, real, values, type, work.device.data(), work.device_bytes,
                                         work.host.data(), work.host_bytes, info, a.count));
    return;
  }
  SCONCE_SOLVER(cusolverDnXsyevd_bufferSize(by.handle.value, by.params.value, job, fill_of(triangle), a.rows, type,
                                            a.data, a.rows, real, values, type, &work.device_bytes, &work.host_bytes));
  work.allocate(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    SCONCE_SOLVER(cusolverDnXsyevd(
        by.handle.value, by.params.value, job, fill_of(triangle), a.rows, type, matrix_at(a, i), a.rows, real,
        static_cast<char*>(values) + i * a.rows * static_cast<int64_t>(real_bytes(a.dtype)), type, work.device.data(),
        work.device_bytes, work.host.data(), work.host_bytes, info + i));
}

void eigen_general(const Matrices& a, void* values, void* vectors, int32_t* info) {
  if (a.count == 0) return;
  Solver& by = solver();
  const cudaDataType_t type = type_of(a.dtype);
  const cusolverEigMode_t job = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  const int64_t n = a.rows, item = static_cast<int64_t>(dtype_bytes(a.dtype));
  Workspaces work;
  SCONCE_SOLVER(cusolverDnXgeev_bufferSize(by.handle.value, by.params.value, CUSOLVER_EIG_MODE_NOVECTOR, job, n, type,
                                           a.data, n, type, values, type, nullptr, n, type, vectors, n, type,
                                           &work.device_bytes, &work.host_bytes));
  work.allocate(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    SCONCE_SOLVER(cusolverDnXgeev(by.handle.value, by.params.value, CUSOLVER_EIG_MODE_NOVECTOR, job, n, type,
                                  matrix_at(a, i), n, type, static_cast<char*>(values) + i * n * item, type, nullptr, n,
                                  type, vectors ? static_cast<char*>(vectors) + i * n * n * item : nullptr, n, type,
                                  work.device.data(), work.device_bytes, work.host.data(), work.host_bytes, info + i));
}

void singular_values(const Matrices& a, char job, void* s, void* u, void* vt, int32_t* info) {
  if (a.count == 0) return;
  Solver& by = solver();
  const cudaDataType_t type = type_of(a.dtype), real = real_type_of(a.dtype);
  const int64_t m = a.rows, n = a.columns, item = static_cast<int64_t>(dtype_bytes(a.dtype));
  const int64_t u_step = job == 'N' ? 0 : m * (job == 'A' ? m : n) * item, vt_step = job == 'N' ? 0 : n * n * item;
  const auto letter = static_cast<signed char>(job);
  Workspaces work;
  SCONCE_SOLVER(cusolverDnXgesvd_bufferSize(by.handle.value, by.params.value, letter, letter, m, n, type, a.data, m,
                                            real, s, type, u, m, type, vt, n, type, &work.device_bytes,
                                            &work.host_bytes));
  work.allocate(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    SCONCE_SOLVER(cusolverDnXgesvd(by.handle.value, by.params.value, letter, letter, m, n, type, matrix_at(a, i), m,
                                   real, static_cast<char*>(s) + i * n * static_cast<int64_t>(real_bytes(a.dtype)),
                                   type, static_cast<char*>(u) + i * u_step, m, type,
                                   static_cast<char*>(vt) + i * vt_step, n, type, work.device.data(), work.device_bytes,
                                   work.host.data(), work.host_bytes, info + i));
}

}  // namespace sconce::cuda
