#include "src/ops/loss.h"

#include <cmath>

#include "sconce/check.h"
#include "src/ops/convert.h"
#include "src/ops/copy.h"
#include "src/ops/dispatch.h"
#include "src/ops/strided_loop.h"

namespace sconce::cpu {

Tensor soft_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                 int64_t reduction) {
  constexpr std::string_view kName = "soft_margin_loss_backward";
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), kName);
  const Shape shape =
      broadcast_shapes(kName, broadcast_shapes(kName, self.sizes(), target.sizes()), grad_output.sizes());
  const bool half = self.dtype() == DType::kFloat16 || self.dtype() == DType::kBFloat16;
  const DType dtype = half ? DType::kFloat32 : self.dtype();
  const Tensor* const operands[] = {&target, &self};
  Tensor out = Tensor::empty_strided(shape, elementwise_strides(shape, operands), dtype);
  const Tensor x = to_dtype(self, dtype), y = to_dtype(target, dtype), g = to_dtype(grad_output, dtype);
  const Shape xs = broadcast_strides(kName, x, shape), ys = broadcast_strides(kName, y, shape),
              gs = broadcast_strides(kName, g, shape);
  dispatch_float_double(dtype, kName, [&]<class T>() {
    const T norm = reduction == 1 ? static_cast<T>(-1.0 / static_cast<double>(self.numel())) : T(-1);
    const StridedLoop<4> loop(shape, {out.strides(), xs, ys, gs}, {sizeof(T), sizeof(T), sizeof(T), sizeof(T)});
    const auto at = [](const Tensor& t) { return static_cast<char*>(t.data()); };
    loop.run({at(out), at(x), at(y), at(g)}, [norm](char* const* p, const int64_t* stride, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const T a = *reinterpret_cast<const T*>(p[1] + i * stride[1]),
                b = *reinterpret_cast<const T*>(p[2] + i * stride[2]);
        const T z = std::exp(-b * a);
        *reinterpret_cast<T*>(p[0] + i * stride[0]) =
            norm * b * z / (z + 1) * *reinterpret_cast<const T*>(p[3] + i * stride[3]);
      }
    });
  });
  return to_dtype(out, self.dtype());
}

}  // namespace sconce::cpu
