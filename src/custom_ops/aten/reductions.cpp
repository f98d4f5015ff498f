// Reductions and products that Inductor compiles itself unless it is told to call operators.
#include "sconce/check.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/binary_functions.h"
#include "src/cpu/elementwise/comparisons.h"
#include "src/cpu/elementwise/functions.h"
#include "src/cpu/matmul/products.h"
#include "src/cpu/movement/movement.h"
#include "src/cpu/reduction/extrema.h"
#include "src/cpu/reduction/moments.h"
#include "src/cpu/reduction/norms.h"
#include "src/cpu/reduction/sum.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/strided_loop.h"

namespace sconce::custom_ops {
namespace {

void check_some(const char* name, const Tensor& self) {
  SCONCE_CHECK(self.numel() > 0, kInvalidArgument, name,
               "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
               "'dim' argument.");
}
Tensor largest(const Tensor& self) {
  check_some("max", self);
  return cpu::amax(self, {}, false);
}
Tensor least(const Tensor& self) {
  check_some("min", self);
  return cpu::amin(self, {}, false);
}
Tensor all_elements(const Tensor& self) { return cpu::all(self, std::nullopt, false); }
Tensor all_along(const Tensor& self, int64_t dim, bool keepdim) { return cpu::all(self, IntSpan(&dim, 1), keepdim); }
Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim) {
  return cpu::count_nonzero(self, dim ? std::optional(IntSpan(&*dim, 1)) : std::nullopt);
}
Tensor count_nonzero_along(const Tensor& self, IntSpan dim) { return cpu::count_nonzero(self, dim); }
Scalar order_of(const std::optional<Scalar>& p) { return p.value_or(Scalar(int64_t{2})); }
Tensor norm_along(const Tensor& self, std::optional<Scalar> p, IntSpan dim, bool keepdim) {
  return cpu::linalg_vector_norm(self, order_of(p), dim, keepdim, std::nullopt);
}
Tensor norm_as(const Tensor& self, std::optional<Scalar> p, IntSpan dim, bool keepdim, DType dtype) {
  return cpu::linalg_vector_norm(self, order_of(p), dim, keepdim, dtype);
}
Tensor norm(const Tensor& self, Scalar p) {
  return cpu::linalg_vector_norm(self, p, std::nullopt, false, std::nullopt);
}
Tensor deviation(const Tensor& self, std::optional<IntSpan> dim, std::optional<Scalar> correction, bool keepdim) {
  return cpu::std_mean(self, dim, correction, keepdim)[0];
}
Tensor trace(const Tensor& self) {
  SCONCE_CHECK(self.dim() == 2, kInvalidArgument, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return cpu::sum(cpu::diagonal(self, 0, 0, 1), std::nullopt, false, std::nullopt);
}
// Scales down the slices along dim whose norm exceeds maxnorm.
Tensor renorm(const Tensor& self, Scalar p, int64_t dim, Scalar maxnorm) {
  SCONCE_CHECK(p.to_double() > 0, kInvalidArgument, "renorm: non-positive-norm not supported");
  SCONCE_CHECK(!maxnorm.is_complex() && maxnorm.to_double() >= 0, kInvalidArgument,
               "renorm: expected maxnorm to be >= 0");
  SCONCE_CHECK(self.dim() > 1, kInvalidArgument, "renorm: input needs at least 2 dimensions, got ", self.dim(),
               " dimensions");
  const int64_t kept = wrap_dim("renorm", dim, self.dim());
  std::vector<int64_t> others;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != kept) others.push_back(d);
  const bool small = self.dtype() == DType::kFloat16 || self.dtype() == DType::kBFloat16;
  const Tensor norms =
      cpu::linalg_vector_norm(self, p, IntSpan(others), true, small ? std::optional(DType::kFloat32) : std::nullopt);
  const Tensor ratios = cpu::divide(to_dtype(number_tensor(maxnorm), norms.dtype()),
                                    cpu::add_number(norms, Scalar(1e-7), Scalar(int64_t{1})));
  const Tensor factors =
      cpu::where(cpu::gt_number(norms, maxnorm), ratios, to_dtype(number_tensor(Scalar(1.0)), norms.dtype()));
  return contiguous(cpu::multiply(self, to_dtype(factors, is_complex(self.dtype()) ? factors.dtype() : self.dtype())));
}
// Half types are rounded once, at the end.
Tensor euclidean_dist(const Tensor& x1, const Tensor& x2) {
  const bool small = x1.dtype() == DType::kFloat16 || x1.dtype() == DType::kBFloat16;
  if (!small || x2.dtype() != x1.dtype()) return cpu::_cdist_forward(x1, x2, 2.0, 1);
  return to_dtype(cpu::_cdist_forward(to_dtype(x1, DType::kFloat32), to_dtype(x2, DType::kFloat32), 2.0, 1),
                  x1.dtype());
}

// Recipe 0 is one scale per matrix; recipe 1 one per row of self and per column of mat2. PyTorch has the others only on
// GPUs.
Tensor scaled_mm(const Tensor& self, const Tensor& mat2, TensorList scale_a, IntSpan recipe_a, IntSpan,
                 TensorList scale_b, IntSpan recipe_b, IntSpan, const Tensor* bias, OptType out_dtype, IntSpan,
                 bool use_fast_accum) {
  SCONCE_CHECK(scale_a.size() == 1 && scale_b.size() == 1 && recipe_a.size() == 1 && recipe_b.size() == 1,
               kInvalidArgument, "_scaled_mm_v2: expected one scale and one recipe for each matrix");
  SCONCE_CHECK(recipe_a[0] == recipe_b[0] && (recipe_a[0] == 0 || recipe_a[0] == 1), kUnsupported,
               "_scaled_mm_v2: scaling recipes ", recipe_a[0], " and ", recipe_b[0],
               ", on CPUs by tensor or by row only");
  return cpu::_scaled_mm(self, mat2, scale_a[0], scale_b[0], bias, nullptr, out_dtype, use_fast_accum);
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", boxed<euclidean_dist>},
    {"aten::_scaled_mm_v2(Tensor self, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, Tensor[] scale_b, int[] recipe_b, int[] swizzle_b, Tensor? bias, ScalarType? out_dtype, int[] contraction_dim=[], bool use_fast_accum=False) -> Tensor", boxed<scaled_mm>},
    {"aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", boxed<cpu::addr>},
    {"aten::all(Tensor self) -> Tensor", boxed<all_elements>},
    {"aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", boxed<all_along>},
    {"aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", boxed<cpu::all>},
    {"aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", boxed<cpu::amin>},
    {"aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", boxed<cpu::aminmax>},
    {"aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", boxed<cpu::argmax>},
    {"aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", boxed<cpu::argmin>},
    {"aten::count_nonzero(Tensor self, int? dim=None) -> Tensor", boxed<count_nonzero>},
    {"aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", boxed<count_nonzero_along>},
    {"aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", boxed<cpu::dist>},
    {"aten::dot(Tensor self, Tensor tensor) -> Tensor", boxed<cpu::dot>},
    {"aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", boxed<cpu::linalg_cross>},
    {"aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", boxed<cpu::linalg_vector_norm>},
    {"aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", boxed<cpu::logsumexp>},
    {"aten::max(Tensor self) -> Tensor", boxed<largest>},
    {"aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", boxed<cpu::max_dim>},
    {"aten::min(Tensor self) -> Tensor", boxed<least>},
    {"aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", boxed<cpu::min_dim>},
    {"aten::mv(Tensor self, Tensor vec) -> Tensor", boxed<cpu::mv>},
    {"aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", boxed<cpu::nansum>},
    {"aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor", boxed<norm>},
    {"aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", boxed<norm_along>},
    {"aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor", boxed<norm_as>},
    {"aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", boxed<renorm>},
    {"aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", boxed<deviation>},
    {"aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)", boxed<cpu::std_mean>},
    {"aten::trace(Tensor self) -> Tensor", boxed<trace>},
    {"aten::vdot(Tensor self, Tensor other) -> Tensor", boxed<cpu::vdot>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_reduction_rows() { return kRows; }

}  // namespace sconce::custom_ops
