#include "src/tensor/spatial/fractional_axes.h"

#include <algorithm>

#include "sconce/check.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rows/planes.h"

namespace sconce {

FractionalAxes fractional_axes(std::string_view name, const Tensor& self, IntSpan kernel_size, IntSpan output_size,
                               int dims) {
  const auto n = static_cast<size_t>(dims);
  SCONCE_CHECK(kernel_size.size() == n && output_size.size() == n, kInvalidArgument, name,
               ": kernel_size and output_size must hold ", dims, " numbers");
  SCONCE_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, kInvalidArgument, name, ": Expected ", dims + 1,
               "D or ", dims + 2, "D tensor, but got: ", to_string(self.sizes()));
  for (int64_t d = 1; d < self.dim(); ++d)
    SCONCE_CHECK(self.size(d) > 0, kInvalidArgument, name,
                 ": Expected input to have non-zero size for non-batch dimensions, but got ", to_string(self.sizes()));
  FractionalAxes axes;
  for (int d = 0; d < dims; ++d) {
    const auto k = static_cast<size_t>(d);
    axes[static_cast<size_t>(3 - dims + d)] = {self.size(self.dim() - dims + d), output_size[k], kernel_size[k]};
    SCONCE_CHECK(output_size[k] > 0 && kernel_size[k] > 0, kInvalidArgument, name, ": kernel_size ",
                 to_string(kernel_size), " and output_size ", to_string(output_size), " must be positive");
    SCONCE_CHECK(output_size[k] + kernel_size[k] - 1 <= self.size(self.dim() - dims + d), kInvalidArgument, name,
                 ": pool size ", kernel_size[k], " too large relative to input size ",
                 self.size(self.dim() - dims + d));
  }
  return axes;
}

Shape fractional_sizes(const Tensor& self, IntSpan output_size) {
  Shape sizes(self.sizes());
  for (size_t d = 0; d < output_size.size(); ++d)
    sizes[sizes.rank() - static_cast<int>(output_size.size() - d)] = output_size[d];
  return sizes;
}

void check_fractional_samples(std::string_view name, const Tensor& self, const Tensor& random_samples, int dims) {
  const Planes planes = planes_of(self.sizes(), dims);
  SCONCE_CHECK(random_samples.dtype() == self.dtype(), kInvalidArgument, name,
               ": Expect _random_samples to have the same dtype as input");
  SCONCE_CHECK(random_samples.dim() == 3 && random_samples.size(2) == dims &&
                   random_samples.size(0) * random_samples.size(1) >= planes.count,
               kInvalidArgument, name, ": _random_samples of sizes ", to_string(random_samples.sizes()),
               " do not fit an input of ", to_string(self.sizes()));
}

Shape check_fractional_gradient(std::string_view name, const Tensor& grad_output, const Tensor& self,
                                IntSpan output_size, const Tensor& indices, int dims) {
  SCONCE_CHECK(output_size.size() == static_cast<size_t>(dims) && (self.dim() == dims + 1 || self.dim() == dims + 2),
               kInvalidArgument, name, ": output_size ", to_string(output_size), " does not fit an input of ",
               to_string(self.sizes()));
  const Shape sizes = fractional_sizes(self, output_size);
  for (const Tensor* t : {&grad_output, &indices})
    SCONCE_CHECK(std::equal(t->sizes().begin(), t->sizes().end(), IntSpan(sizes).begin(), IntSpan(sizes).end()),
                 kInvalidArgument, name, ": expected sizes ", to_string(sizes), ", got ", to_string(t->sizes()));
  SCONCE_CHECK(indices.dtype() == DType::kInt64 && grad_output.dtype() == self.dtype(), kInvalidArgument, name,
               ": indices must be int64 and grad_output ", dtype_name(self.dtype()));
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), name);
  return sizes;
}

}  // namespace sconce
