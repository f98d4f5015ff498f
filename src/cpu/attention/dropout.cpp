// Dropout on PyTorch's random stream.
#include "sconce/check.h"
#include "src/cpu/random/random.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elementwise.h"
#include "src/tensor/fill.h"

namespace sconce::cpu {

// input * mask / (1 - p), and the mask: bool, one where an element is kept. Any floating or complex dtype; dense
// inputs keep their strides. train: null counts as true; false gives a copy and a mask of ones. Without elements: the
// input itself and a mask of its own dtype, as ATen. Matches aten::native_dropout on the CPU, torch 2.15.
std::array<Tensor, 2> native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  const DType dtype = input.dtype();
  if (input.numel() == 0) return {input, empty_like(input)};
  Tensor mask = empty_like(input, DType::kBool);
  if (!train.value_or(true)) {
    fill(mask, int64_t{1});
    return {clone(input), mask};
  }
  const double kept = 1.0 - p;
  const double scale = kept == 0.0 ? 0.0 : 1.0 / kept;
  fill_bernoulli(mask, kept, nullptr);
  SCONCE_CHECK(!is_integral(dtype, true), kInvalidArgument,
               "native_dropout: result type Float can't be cast to the desired output type ", dtype_name(dtype));
  Tensor out = make_result("native_dropout", {&input, &mask}, dtype, dtype);
  // A zero mask leaves the sign, and makes NaN of what is not finite.
  const auto real = [&]<class T>(T s) {
    map_elements<T, T, bool>("native_dropout", out, [s](T x, bool keep) { return x * static_cast<T>(keep) * s; },
                             {&input, &mask});
  };
  const auto complex = [&]<class T>() {
    using Part = typename T::value_type;
    map_elements<T, T, bool>("native_dropout", out,
                             [s = static_cast<Part>(scale)](T x, bool keep) {
                               const Part k = static_cast<Part>(keep);
                               const T y(x.real() * k - x.imag() * 0, x.real() * 0 + x.imag() * k);
                               return T(y.real() * s - y.imag() * 0, y.real() * 0 + y.imag() * s);
                             },
                             {&input, &mask});
  };
  switch (dtype) {
    case DType::kFloat16:
      real(static_cast<float>(Half(static_cast<float>(scale))));
      break;
    case DType::kBFloat16:
      real(static_cast<float>(BFloat16(static_cast<float>(scale))));
      break;
    case DType::kFloat32:
      real(static_cast<float>(scale));
      break;
    case DType::kFloat64:
      real(scale);
      break;
    case DType::kComplex32:
    case DType::kComplex64:
      complex.operator()<ComplexFloat>();
      break;
    case DType::kComplex128:
      complex.operator()<ComplexDouble>();
      break;
    default:
      fail_dispatch(dtype, "native_dropout");
  }
  return {std::move(out), std::move(mask)};
}

}  // namespace sconce::cpu
