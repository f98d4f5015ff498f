// Matrix products by cuBLASLt. Match aten::mm.out, addmm.out, bmm.out, baddbmm.out (torch 2.11, CUDA): float32 without
// TF32, half types with sums in float32. Operands of any strides: those that are neither rows nor columns packed are
// copied first, as is a result.
#include <cublasLt.h>

#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "src/cuda/copy.h"
#include "src/cuda/error.h"
#include "src/cuda/handle.h"
#include "src/cuda/ops.h"
#include "src/cuda/stream.h"
#include "src/device/lazy_library.h"
#include "src/ops/strided_loop.h"

SCONCE_LAZY_LIBRARY(cublasLt);

namespace sconce::cuda {
namespace {

constexpr size_t kWorkspace = 32 << 20;

void check_blas(cublasStatus_t status, const char* expression) {
  SCONCE_CHECK(status == CUBLAS_STATUS_SUCCESS, kDevice, expression, ": cuBLASLt error ", static_cast<int>(status));
}
#define SCONCE_BLAS(expression) check_blas((expression), #expression)

cublasLtHandle_t handle_of(int device) {
  static std::mutex mutex;
  static std::array<cublasLtHandle_t, 64> handles{};
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[static_cast<size_t>(device) % handles.size()];
  if (!handle) SCONCE_BLAS(cublasLtCreate(&handle));
  return handle;
}

struct Types {
  cudaDataType_t data;
  cublasComputeType_t compute;
  cudaDataType_t scale;
};
Types types_of(const char* name, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case DType::kFloat64:
      return {CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
    case DType::kFloat16:
      return {CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case DType::kBFloat16:
      return {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case DType::kComplex64:
      return {CUDA_C_32F, CUBLAS_COMPUTE_32F, CUDA_C_32F};
    case DType::kComplex128:
      return {CUDA_C_64F, CUBLAS_COMPUTE_64F, CUDA_C_64F};
    default:
      SCONCE_FAIL(kUnsupported, name, ": not implemented for '", dtype_name(dtype), "' on CUDA");
  }
}

// A batch of matrices as cuBLAS takes them: column-major, or the transpose of one.
struct Operand {
  Tensor tensor;  // keeps a copy
  bool transposed;
  int64_t leading, batch_stride;
};

// [batch, rows, columns]. A row-major matrix is the transpose of a column-major one.
Operand operand(const Tensor& t) {
  const int64_t rows = t.size(1), columns = t.size(2);
  const bool by_columns =
      (t.stride(1) == 1 || rows == 1) && (columns == 1 || t.stride(2) >= std::max<int64_t>(rows, 1));
  if (by_columns) return {t, false, columns == 1 ? std::max<int64_t>(rows, 1) : t.stride(2), t.stride(0)};
  const bool by_rows =
      (t.stride(2) == 1 || columns == 1) && (rows == 1 || t.stride(1) >= std::max<int64_t>(columns, 1));
  if (by_rows) return {t, true, rows == 1 ? std::max<int64_t>(columns, 1) : t.stride(1), t.stride(0)};
  Tensor packed = contiguous(t);
  const int64_t stride = packed.stride(0);
  return {std::move(packed), true, std::max<int64_t>(columns, 1), stride};
}

struct Problem {
  DType dtype;
  int64_t batch, m, n, k;
  bool a_transposed, b_transposed;
  int64_t lda, ldb, ldc, ldd, a_stride, b_stride, c_stride, d_stride;
  int device;
  friend bool operator==(const Problem&, const Problem&) = default;
};
struct ProblemHash {
  size_t operator()(const Problem& p) const noexcept {
    size_t h = static_cast<size_t>(p.dtype) * 31 + static_cast<size_t>(p.device);
    for (const int64_t v : {p.batch, p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.ldd, p.a_stride, p.b_stride, p.c_stride,
                            p.d_stride, int64_t{p.a_transposed}, int64_t{p.b_transposed}})
      h = (h ^ static_cast<size_t>(v)) * 0x9E3779B97F4A7C15u;
    return h;
  }
};

// Descriptors and the algorithm of a problem: found once, by cuBLASLt's heuristic.
struct Plan {
  Handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> operation;
  Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> a, b, c, d;
  cublasLtMatmulAlgo_t algorithm{};
};

void make_layout(cublasLtMatrixLayout_t& layout, cudaDataType_t type, int64_t rows, int64_t columns, int64_t leading,
                 int64_t batch, int64_t stride) {
  SCONCE_BLAS(
      cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), leading));
  if (batch == 1) return;
  const auto count = static_cast<int32_t>(batch);
  SCONCE_BLAS(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  SCONCE_BLAS(
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
}

std::shared_ptr<const Plan> make_plan(const char* name, const Problem& p) {
  const Types types = types_of(name, p.dtype);
  auto plan = std::make_shared<Plan>();
  SCONCE_BLAS(cublasLtMatmulDescCreate(&plan->operation.value, types.compute, types.scale));
  const cublasOperation_t ta = p.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                          tb = p.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  SCONCE_BLAS(cublasLtMatmulDescSetAttribute(plan->operation.value, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta));
  SCONCE_BLAS(cublasLtMatmulDescSetAttribute(plan->operation.value, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb));
  make_layout(plan->a.value, types.data, p.a_transposed ? p.k : p.m, p.a_transposed ? p.m : p.k, p.lda, p.batch,
              p.a_stride);
  make_layout(plan->b.value, types.data, p.b_transposed ? p.n : p.k, p.b_transposed ? p.k : p.n, p.ldb, p.batch,
              p.b_stride);
  make_layout(plan->c.value, types.data, p.m, p.n, p.ldc, p.batch, p.c_stride);
  make_layout(plan->d.value, types.data, p.m, p.n, p.ldd, p.batch, p.d_stride);
  Handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
  SCONCE_BLAS(cublasLtMatmulPreferenceCreate(&preference.value));
  const size_t workspace = kWorkspace;
  SCONCE_BLAS(cublasLtMatmulPreferenceSetAttribute(preference.value, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &workspace, sizeof workspace));
  // Views may start anywhere: only the elements' own alignment is sure.
  const auto aligned = static_cast<uint32_t>(dtype_bytes(p.dtype));
  for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    const uint32_t bytes = aligned;
    SCONCE_BLAS(cublasLtMatmulPreferenceSetAttribute(preference.value, which, &bytes, sizeof bytes));
  }
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  SCONCE_BLAS(cublasLtMatmulAlgoGetHeuristic(handle_of(p.device), plan->operation.value, plan->a.value, plan->b.value,
                                             plan->c.value, plan->d.value, preference.value, 1, &found, &count));
  SCONCE_CHECK(count > 0, kDevice, name, ": cuBLASLt has no algorithm for this product");
  plan->algorithm = found.algo;
  return plan;
}

std::shared_ptr<const Plan> plan_for(const char* name, const Problem& problem) {
  static std::mutex mutex;
  static std::unordered_map<Problem, std::shared_ptr<const Plan>, ProblemHash> plans;
  constexpr size_t kMost = 4096;  // shapes that keep changing must not fill the memory
  const std::lock_guard lock(mutex);
  if (const auto known = plans.find(problem); known != plans.end()) return known->second;
  if (plans.size() >= kMost) plans.clear();
  return plans.emplace(problem, make_plan(name, problem)).first->second;
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto begin = [](const Tensor& t) { return static_cast<const std::byte*>(t.data()); };
  const auto end = [&](const Tensor& t) {
    return begin(t) + storage_bytes_needed(t.sizes(), t.strides(), 0, t.itemsize());
  };
  return begin(a) < end(b) && begin(b) < end(a);
}

// out [batch, m, n] = beta self + alpha a [batch, m, k] @ b [batch, k, n]; self may be out itself, or is given as
// `bias` and copied there before.
void product(const char* name, const Tensor& a, const Tensor& b, const Tensor* bias, double beta, double alpha,
             Tensor& out) {
  require_library(sconce_lazy_cublasLt);
  const DeviceScope scope(out.device());
  if (out.numel() == 0) return;
  // A result of other strides, or one that an operand reads, is made aside.
  const Operand target = operand(out);
  const bool aside = target.tensor.storage() != out.storage() || target.tensor.data() != out.data() ||
                     overlap(a, out) || overlap(b, out) || (bias && overlap(*bias, out) && bias->data() != out.data());
  Tensor result = aside ? Tensor::empty(out.sizes(), out.dtype(), out.device()) : out;
  if (bias && beta != 0 && bias->data() != result.data()) copy(*bias, result, false);
  if (a.size(2) == 0 || alpha == 0) {
    if (!bias || beta == 0) {
      const unsigned char zero[16] = {};
      fill(result, zero);
    } else {
      SCONCE_CHECK(beta == 1, kUnsupported, name, ": an empty product beside beta ", beta);
    }
    if (aside) copy(result, out, false);
    return;
  }
  // cuBLAS writes columns: a row-major result is the transpose of the product of the transposes.
  const Operand d = operand(result), left = operand(a), right = operand(b);
  const Operand& x = d.transposed ? right : left;
  const Operand& y = d.transposed ? left : right;
  Problem p{};
  p.dtype = out.dtype();
  p.batch = out.size(0);
  p.m = d.transposed ? out.size(2) : out.size(1);
  p.n = d.transposed ? out.size(1) : out.size(2);
  p.k = a.size(2);
  p.a_transposed = x.transposed != d.transposed;
  p.b_transposed = y.transposed != d.transposed;
  p.lda = x.leading;
  p.ldb = y.leading;
  p.ldc = p.ldd = d.leading;
  p.a_stride = x.batch_stride;
  p.b_stride = y.batch_stride;
  p.c_stride = p.d_stride = d.batch_stride;
  p.device = out.device().index;
  const std::shared_ptr<const Plan> kept = plan_for(name, p);
  const Plan& plan = *kept;
  const Tensor workspace = [&] {
    const auto bytes = static_cast<int64_t>(kWorkspace);
    return Tensor::empty(IntSpan(&bytes, 1), DType::kUInt8, out.device());
  }();
  struct {
    double re, im;
  } alpha64{alpha, 0}, beta64{bias ? beta : 0, 0};
  struct {
    float re, im;
  } alpha32{static_cast<float>(alpha), 0}, beta32{static_cast<float>(beta64.re), 0};
  const bool wide = out.dtype() == DType::kFloat64 || out.dtype() == DType::kComplex128;
  const void* alpha_at = wide ? static_cast<const void*>(&alpha64) : &alpha32;
  const void* beta_at = wide ? static_cast<const void*>(&beta64) : &beta32;
  SCONCE_BLAS(cublasLtMatmul(handle_of(p.device), plan.operation.value, alpha_at, x.tensor.data(), plan.a.value,
                             y.tensor.data(), plan.b.value, beta_at, result.data(), plan.c.value, result.data(),
                             plan.d.value, &plan.algorithm, workspace.data(), kWorkspace, current_stream()));
  if (aside) copy(result, out, false);
}

Tensor as_batch(const Tensor& t) {
  const int64_t sizes[] = {1, t.size(0), t.size(1)}, strides[] = {0, t.stride(0), t.stride(1)};
  return t.as_strided(sizes, strides, t.storage_offset());
}

void check_matrices(const char* name, const Tensor& out, const Tensor& a, const Tensor& b, int64_t rank) {
  SCONCE_CHECK(a.dim() == rank && b.dim() == rank && out.dim() == rank, kInvalidArgument, name, ": expected ", rank,
               " dimensions, got ", describe(a), ", ", describe(b), " and ", describe(out));
  const int64_t r = rank - 2;
  bool fits = a.size(r + 1) == b.size(r) && out.size(r) == a.size(r) && out.size(r + 1) == b.size(r + 1);
  if (rank == 3) fits = fits && a.size(0) == b.size(0) && out.size(0) == a.size(0);
  SCONCE_CHECK(fits, kInvalidArgument, name, ": shapes do not fit: ", to_string(a.sizes()), ", ", to_string(b.sizes()),
               " into ", to_string(out.sizes()));
  SCONCE_CHECK(a.dtype() == b.dtype() && a.dtype() == out.dtype(), kInvalidArgument, name, ": expected one dtype, got ",
               dtype_name(a.dtype()), ", ", dtype_name(b.dtype()), " and ", dtype_name(out.dtype()));
  SCONCE_CHECK(!a.is_cpu() && a.device() == b.device() && a.device() == out.device(), kInvalidArgument, name,
               ": expected tensors of one CUDA device");
}

}  // namespace

void mm_out(Tensor& out, const Tensor& self, const Tensor& mat2) {
  check_matrices("mm", out, self, mat2, 2);
  Tensor target = as_batch(out);
  product("mm", as_batch(self), as_batch(mat2), nullptr, 0, 1, target);
}

void addmm_out(Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2, double beta, double alpha) {
  check_matrices("addmm", out, mat1, mat2, 2);
  Tensor target = as_batch(out);
  const Tensor bias = expand("addmm", self, out.sizes());
  const Tensor batch = as_batch(bias);
  product("addmm", as_batch(mat1), as_batch(mat2), &batch, beta, alpha, target);
}

void bmm_out(Tensor& out, const Tensor& self, const Tensor& mat2) {
  check_matrices("bmm", out, self, mat2, 3);
  product("bmm", self, mat2, nullptr, 0, 1, out);
}

void baddbmm_out(Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2, double beta,
                 double alpha) {
  check_matrices("baddbmm", out, batch1, batch2, 3);
  const Tensor bias = expand("baddbmm", self, out.sizes());
  product("baddbmm", batch1, batch2, &bias, beta, alpha, out);
}

}  // namespace sconce::cuda
