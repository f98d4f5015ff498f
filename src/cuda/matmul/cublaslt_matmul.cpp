#include "src/cuda/matmul/cublaslt_matmul.h"

#include <cublasLt.h>

#include <memory>

#include "sconce/mutex.h"
#include "src/cuda/elementwise/elementwise.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/handle.h"
#include "src/cuda/runtime/per_device.h"
#include "src/cuda/runtime/plan_cache.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/device/lazy_library.h"
#include "src/tensor/strided_loop.h"

SCONCE_LAZY_LIBRARY(cublasLt);

namespace sconce::cuda {
namespace {

constexpr size_t kWorkspace = 32 << 20;

void check_blas(cublasStatus_t status, const char* expression) {
  SCONCE_CHECK(status == CUBLAS_STATUS_SUCCESS, kDevice, expression, ": cuBLASLt error ", static_cast<int>(status));
}
#define SCONCE_BLAS(expression) check_blas((expression), #expression)

cublasLtHandle_t handle_of(int device) {
  static Mutex mutex;
  static PerDevice<cublasLtHandle_t> handles SCONCE_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  cublasLtHandle_t& handle = handles[device];
  if (!handle) SCONCE_BLAS(cublasLtCreate(&handle));
  return handle;
}

cudaDataType_t data_type(const char* name, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDA_R_32F;
    case DType::kFloat64:
      return CUDA_R_64F;
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    case DType::kComplex64:
      return CUDA_C_32F;
    case DType::kComplex128:
      return CUDA_C_64F;
    case DType::kInt8:
      return CUDA_R_8I;
    case DType::kInt32:
      return CUDA_R_32I;
    case DType::kFloat8E4M3FN:
      return CUDA_R_8F_E4M3;
    case DType::kFloat8E5M2:
      return CUDA_R_8F_E5M2;
    default:
      SCONCE_FAIL(kUnsupported, name, ": not implemented for '", dtype_name(dtype), "' on CUDA");
  }
}

// A batch of matrices as cuBLAS takes it: column-major, or transposed column-major.
struct Operand {
  Tensor tensor;  // keeps a copy alive
  bool transposed;
  int64_t leading, batch_stride;
};

// For t [batch, rows, columns]: a row-major matrix is a transposed column-major one. A single row or column is both;
// columns_first decides then.
Operand operand(const Tensor& t, bool columns_first = false) {
  const int64_t rows = t.size(1), columns = t.size(2);
  const bool by_columns =
      (t.stride(1) == 1 || rows == 1) && (columns == 1 || t.stride(2) >= std::max<int64_t>(rows, 1));
  const bool by_rows =
      (t.stride(2) == 1 || columns == 1) && (rows == 1 || t.stride(1) >= std::max<int64_t>(columns, 1));
  if (by_rows && !(by_columns && columns_first))
    return {t, true, rows == 1 ? std::max<int64_t>(columns, 1) : t.stride(1), t.stride(0)};
  if (by_columns) return {t, false, columns == 1 ? std::max<int64_t>(rows, 1) : t.stride(2), t.stride(0)};
  Tensor packed = contiguous(t);
  const int64_t stride = packed.stride(0);
  return {std::move(packed), true, std::max<int64_t>(columns, 1), stride};
}

// How the factors are scaled; the algorithm depends on it.
enum class Scaling : int8_t { kNone, kSingle, kByRow };

struct Problem {
  DType a_type, b_type, out_type;
  Scaling scaling;
  bool fast_sums, scaled_result, tf32;
  int8_t bias_type;  // -1: none
  Activation activation;
  // Alignment of the addresses, up to 256 bytes; the algorithm depends on it.
  int16_t a_alignment, b_alignment, c_alignment;
  int64_t batch, m, n, k;
  bool a_transposed, b_transposed;
  int64_t lda, ldb, ldc, a_stride, b_stride, c_stride;
  int device;
  friend bool operator==(const Problem&, const Problem&) = default;
};
struct ProblemHash {
  size_t operator()(const Problem& p) const noexcept {
    size_t h = 0;
    const auto mix = [&](auto... values) { ((h = (h ^ static_cast<size_t>(values)) * 0x9E3779B97F4A7C15u), ...); };
    mix(p.device, p.a_type, p.b_type, p.out_type, p.scaling, p.fast_sums, p.scaled_result, p.tf32, p.bias_type,
        p.activation, p.a_alignment, p.b_alignment, p.c_alignment, p.batch, p.m, p.n, p.k, p.lda, p.ldb, p.ldc,
        p.a_stride, p.b_stride, p.c_stride, p.a_transposed, p.b_transposed);
    return h;
  }
};

// Descriptors and algorithm for a problem, found once by cuBLASLt's heuristic.
struct Plan {
  Handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> operation;
  Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> a, b, c, d;
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;
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

using Operation = Handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;

template <class T>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, T value) {
  SCONCE_BLAS(cublasLtMatmulDescSetAttribute(operation.value, attribute, &value, sizeof value));
}

// Addresses of the scale factors (a and b in cuBLAS's order), and of the bias.
struct Factors {
  const void *a = nullptr, *b = nullptr, *result = nullptr, *bias = nullptr;
};

void describe_operation(const char* name, Operation& operation, const Problem& p, const Factors& factors) {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  if (p.out_type == DType::kFloat64 || p.out_type == DType::kComplex128) {
    compute = CUBLAS_COMPUTE_64F;
    scale = data_type(name, p.out_type);
  } else if (p.out_type == DType::kComplex64) {
    scale = CUDA_C_32F;
  } else if (p.out_type == DType::kInt32) {
    compute = CUBLAS_COMPUTE_32I;
    scale = CUDA_R_32I;
  }
  if (p.tf32) compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  SCONCE_BLAS(cublasLtMatmulDescCreate(&operation.value, compute, scale));
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, p.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, p.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.bias_type >= 0) {
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
        p.activation == Activation::kRelu   ? CUBLASLT_EPILOGUE_RELU_BIAS
        : p.activation == Activation::kGelu ? CUBLASLT_EPILOGUE_GELU_BIAS
                                            : CUBLASLT_EPILOGUE_BIAS);
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, factors.bias);
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(name, static_cast<DType>(p.bias_type)));
  }
  if (p.scaling == Scaling::kNone) return;
  if (p.scaling == Scaling::kByRow)
    for (const auto mode : {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE})
      set(operation, mode, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
  set(operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, factors.a);
  set(operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, factors.b);
  if (factors.result) set(operation, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, factors.result);
  set(operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<int8_t>(p.fast_sums));
}

// A float8 result adds no C, but cuBLAS wants its type to be another.
DType added_type(const Problem& p) {
  if (p.out_type != DType::kFloat8E4M3FN && p.out_type != DType::kFloat8E5M2) return p.out_type;
  return p.bias_type >= 0 ? static_cast<DType>(p.bias_type) : DType::kBFloat16;
}

// Null if there is no algorithm.
std::shared_ptr<const Plan> make_plan(const char* name, const Problem& p, const Factors& factors) {
  auto plan = std::make_shared<Plan>();
  describe_operation(name, plan->operation, p, factors);
  make_layout(plan->a.value, data_type(name, p.a_type), p.a_transposed ? p.k : p.m, p.a_transposed ? p.m : p.k, p.lda,
              p.batch, p.a_stride);
  make_layout(plan->b.value, data_type(name, p.b_type), p.b_transposed ? p.n : p.k, p.b_transposed ? p.k : p.n, p.ldb,
              p.batch, p.b_stride);
  make_layout(plan->c.value, data_type(name, added_type(p)), p.m, p.n, p.ldc, p.batch, p.c_stride);
  make_layout(plan->d.value, data_type(name, p.out_type), p.m, p.n, p.ldc, p.batch, p.c_stride);
  Handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
  SCONCE_BLAS(cublasLtMatmulPreferenceCreate(&preference.value));
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    SCONCE_BLAS(cublasLtMatmulPreferenceSetAttribute(preference.value, attribute, &value, sizeof value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(p.a_alignment));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(p.b_alignment));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(p.c_alignment));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(p.c_alignment));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_of(p.device), plan->operation.value, plan->a.value, plan->b.value,
                                     plan->c.value, plan->d.value, preference.value, 1, &found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE || count == 0) return nullptr;
  SCONCE_BLAS(status);
  plan->algorithm = found.algo;
  plan->workspace = found.workspaceSize;
  return plan;
}

PlanCache<const Plan, Problem, ProblemHash>& plans() {
  static PlanCache<const Plan, Problem, ProblemHash> all(4096);  // bounded, because a model's shapes may keep changing
  return all;
}

int16_t alignment_of(const Tensor& t) {
  const auto address = reinterpret_cast<uintptr_t>(t.data());
  return address ? static_cast<int16_t>(std::min<uintptr_t>(address & -address, 256)) : int16_t{256};
}

// A factor (1 or 0) in the types that scale products.
struct Factor {
  Factor(double value, DType type) : real64{value, 0}, real32{static_cast<float>(value), 0}, kind(type) {
    whole = static_cast<int32_t>(value);
  }
  const void* address() const {
    if (kind == DType::kFloat64 || kind == DType::kComplex128) return real64;
    return kind == DType::kInt32 ? static_cast<const void*>(&whole) : real32;
  }
  double real64[2];
  float real32[2];
  int32_t whole;
  DType kind;
};

}  // namespace

bool overlap(const Tensor& a, const Tensor& b) {
  const auto begin = [](const Tensor& t) { return static_cast<const std::byte*>(t.data()); };
  const auto end = [&](const Tensor& t) {
    return begin(t) + storage_bytes_needed(t.sizes(), t.strides(), 0, t.itemsize());
  };
  return begin(a) < end(b) && begin(b) < end(a);
}

bool try_product(const char* name, const Tensor& a, const Tensor& b, const Tensor* self, double beta, double alpha,
                 Tensor& out, const ProductScales* scales) {
  require_library(sconce_lazy_cublasLt);
  const DeviceScope scope(out.device());
  if (out.numel() == 0) return true;
  // If the result has other strides, or an operand overlaps it, compute into a temporary.
  const Operand target = operand(out);
  const bool aside = target.tensor.storage() != out.storage() || target.tensor.data() != out.data() ||
                     overlap(a, out) || overlap(b, out) || (self && overlap(*self, out) && self->data() != out.data());
  Tensor result = aside ? Tensor::empty(out.sizes(), out.dtype(), out.device()) : out;
  if (a.size(2) == 0 || alpha == 0) {
    if (self && beta != 0) {
      if (beta != 1)
        copy(multiply_number(*self, beta), result, false);
      else if (self->data() != result.data())
        copy(*self, result, false);
    } else {
      fill_zero(result);
    }
    if (aside) copy(result, out, false);
    return true;
  }
  // cuBLAS writes columns, so a row-major result is the transpose of the product of the transposes.
  const Operand d = operand(result), left = operand(a), right = operand(b, true);
  const Operand& x = d.transposed ? right : left;
  const Operand& y = d.transposed ? left : right;
  Problem p{};
  p.a_type = x.tensor.dtype();
  p.b_type = y.tensor.dtype();
  p.out_type = out.dtype();
  p.bias_type = -1;
  p.batch = out.size(0);
  p.m = d.transposed ? out.size(2) : out.size(1);
  p.n = d.transposed ? out.size(1) : out.size(2);
  p.k = a.size(2);
  p.a_transposed = x.transposed != d.transposed;
  p.b_transposed = y.transposed != d.transposed;
  p.lda = x.leading;
  p.ldb = y.leading;
  p.ldc = d.leading;
  p.a_stride = x.batch_stride;
  p.b_stride = y.batch_stride;
  p.c_stride = d.batch_stride;
  p.a_alignment = alignment_of(x.tensor);
  p.b_alignment = alignment_of(y.tensor);
  p.c_alignment = alignment_of(result);
  p.device = out.device().index;
  p.tf32 = current().allow_tf32 && (p.a_type == DType::kFloat32 || p.a_type == DType::kComplex64);
  Factors factors;
  if (scales) {
    if (scales->a) {
      p.scaling = scales->by_row ? Scaling::kByRow : Scaling::kSingle;
      factors.a = (d.transposed ? scales->b : scales->a)->data();
      factors.b = (d.transposed ? scales->a : scales->b)->data();
    }
    p.fast_sums = scales->fast_sums;
    if (scales->result) factors.result = scales->result->data();
    p.scaled_result = factors.result;
    if (scales->bias) {
      if (!d.transposed) return false;  // the library adds the bias to columns of its result
      p.bias_type = static_cast<int8_t>(scales->bias->dtype());
      p.activation = scales->activation;
      factors.bias = scales->bias->data();
    }
  }
  const std::shared_ptr<const Plan> kept = plans().get(p, [&] { return make_plan(name, p, factors); });
  if (!kept) return false;
  const Plan& plan = *kept;
  if (self && beta != 0 && self->data() != result.data()) copy(*self, result, false);
  const Tensor workspace = scratch(plan.workspace, out.device());
  // The description contains addresses of factors, so this call makes its own.
  Operation own;
  if (scales) describe_operation(name, own, p, factors);
  const Factor one(alpha, out.dtype()), add(self ? beta : 0, out.dtype());
  const cublasStatus_t status = cublasLtMatmul(
      handle_of(p.device), scales ? own.value : plan.operation.value, one.address(), x.tensor.data(), plan.a.value,
      y.tensor.data(), plan.b.value, add.address(), added_type(p) == p.out_type ? result.data() : nullptr, plan.c.value,
      result.data(), plan.d.value, &plan.algorithm, workspace.data(), plan.workspace, current_stream());
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
    plans().drop(p);  // for int8 with few rows, the heuristic names algorithms that the library then refuses
    return false;
  }
  check_blas(status, "cublasLtMatmul");
  if (aside) copy(result, out, false);
  return true;
}

void product(const char* name, const Tensor& a, const Tensor& b, const Tensor* self, double beta, double alpha,
             Tensor& out) {
  SCONCE_CHECK(try_product(name, a, b, self, beta, alpha, out), kUnsupported, name, ": cuBLASLt has no algorithm for ",
               describe(a), " and ", describe(b), " into ", describe(out));
}

Tensor as_batch(const Tensor& t) {
  const int64_t sizes[] = {1, t.size(0), t.size(1)}, strides[] = {0, t.stride(0), t.stride(1)};
  return t.as_strided(sizes, strides, t.storage_offset());
}

}  // namespace sconce::cuda
