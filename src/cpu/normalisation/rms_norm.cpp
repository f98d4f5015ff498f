// Root mean square normalisation. Matches aten::_fused_rms_norm, torch 2.15.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "sconce/float_types.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/elements/multiply.h"
#include "src/tensor/factory.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/rules/rms_rows.h"

namespace sconce {
namespace {

constexpr std::string_view kName = "rms_norm";
constexpr int64_t kElemsPerThread = 16384;

template <class C>
C reciprocal_root(C value) {
  if constexpr (kIsComplex<C>) {
    const std::complex<double> r = 1.0 / std::sqrt(std::complex<double>(value.real(), value.imag()));
    return C(static_cast<typename C::value_type>(r.real()), static_cast<typename C::value_type>(r.imag()));
  } else {
    return C{1} / std::sqrt(value);
  }
}

// T: type of elements; C: type in which they are computed.
template <class T>
void normalise(const Tensor& input, const Tensor* weight, double eps, int64_t rows, int64_t length, Tensor& output,
               Tensor& roots) {
  using C = ComputeType<T>;
  const T* const x = input.data_as<T>();
  const C* const w = weight ? weight->data_as<C>() : nullptr;
  T* const y = output.data_as<T>();
  C* const root = roots.data_as<C>();
  parallel_for(0, rows, std::max<int64_t>(1, kElemsPerThread / std::max<int64_t>(1, length)),
               [&](int64_t begin, int64_t end) noexcept {
                 for (int64_t r = begin; r < end; ++r) {
                   const T* const from = x + r * length;
                   // Lanes, so that the sum is one of vectors.
                   constexpr int64_t kLanes = 16;
                   C lanes[kLanes] = {}, sum{};
                   int64_t i = 0;
                   for (; i + kLanes <= length; i += kLanes)
                     for (int64_t l = 0; l < kLanes; ++l) {
                       const auto v = static_cast<C>(from[i + l]);
                       lanes[l] += multiply(v, v);
                     }
                   for (; i < length; ++i) {
                     const auto v = static_cast<C>(from[i]);
                     sum += multiply(v, v);
                   }
                   for (const C& lane : lanes) sum += lane;
                   using Real = decltype(std::abs(C{}));
                   const C scale = reciprocal_root<C>(sum / static_cast<Real>(length) + static_cast<Real>(eps));
                   root[r] = scale;
                   T* const to = y + r * length;
                   if (w)
                     for (i = 0; i < length; ++i)
                       to[i] = static_cast<T>(multiply(multiply(static_cast<C>(from[i]), scale), w[i]));
                   else
                     for (i = 0; i < length; ++i) to[i] = static_cast<T>(multiply(static_cast<C>(from[i]), scale));
                 }
               });
}

}  // namespace

namespace cpu {

// input of a floating or complex dtype, any strides, over its last normalized_shape.size() dimensions (all, if that is
// none): input * rsqrt(mean(input ^ 2) + eps) * weight, and the reciprocal roots, those dimensions being 1, in float32
// for the small floats. weight has the normalised dimensions, any dtype. eps: without one, float32's (float64's for
// float64). The output in the input's memory format, the roots contiguous. kUnsupported for other dtypes.
std::array<Tensor, 2> _fused_rms_norm(const Tensor& input, IntSpan normalized_shape, const Tensor* weight,
                                      std::optional<double> eps) {
  const DType dtype = input.dtype();
  const auto [kept, rows, length, root_sizes] = rms_rows(input, normalized_shape);
  const Tensor x = contiguous(input);
  Tensor output = Tensor::empty(input.sizes(), dtype);
  const auto run = [&]<class T>() {
    constexpr DType kCompute = kDType<ComputeType<T>>;
    Tensor roots = Tensor::empty(root_sizes, kCompute), w;
    if (weight) {
      const IntSpan sizes = input.sizes().last(static_cast<size_t>(input.dim() - kept));
      w = Tensor::empty(sizes, kCompute);
      copy(*weight, w);
    }
    const double limit = dtype == DType::kFloat64 || dtype == DType::kComplex128
                             ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
    normalise<T>(x, weight ? &w : nullptr, eps.value_or(limit), rows, length, output, roots);
    return roots;
  };
  Tensor roots;
  switch (dtype) {
#define SCONCE_CASE(type)                    \
  case kDType<type>:                         \
    roots = run.template operator()<type>(); \
    break;
    SCONCE_CASE(float)
    SCONCE_CASE(double)
    SCONCE_CASE(Half)
    SCONCE_CASE(BFloat16)
    SCONCE_CASE(ComplexFloat)
    SCONCE_CASE(ComplexDouble)
#undef SCONCE_CASE
    default:
      fail_dispatch(dtype, kName);
  }
  // The result of a channels-last input is channels-last.
  return {in_format(kName, output, dtype, suggested_format(input)), roots};
}

}  // namespace cpu
}  // namespace sconce
