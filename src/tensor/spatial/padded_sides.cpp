#include "src/tensor/spatial/padded_sides.h"

#include "sconce/check.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce {

PaddedSides padded_sides(std::string_view name, const Tensor& grad_output, const Tensor& self, IntSpan padding,
                         int dims) {
  SCONCE_CHECK(padding.size() == static_cast<size_t>(2 * dims), kInvalidArgument, name,
               ": padding size is expected to be ", 2 * dims, ", got ", padding.size());
  SCONCE_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, kInvalidArgument, name, ": expected ", dims + 1,
               "D or ", dims + 2, "D input, got ", to_string(self.sizes()));
  PaddedSides sides;
  auto& [in, out, before] = sides;
  for (int d = 0; d < dims; ++d) {
    const auto to = static_cast<size_t>(3 - dims + d), pair = 2 * static_cast<size_t>(dims - 1 - d);
    in[to] = self.size(self.dim() - dims + d);
    before[to] = padding[pair];
    SCONCE_CHECK(!__builtin_add_overflow(in[to], padding[pair], &out[to]) &&
                     !__builtin_add_overflow(out[to], padding[pair + 1], &out[to]),
                 kInvalidArgument, name, ": padding ", to_string(padding), " is too large");
  }
  bool fits = grad_output.dim() == self.dim() && grad_output.dtype() == self.dtype();
  for (int64_t d = 0; fits && d < self.dim(); ++d) {
    const int64_t axis = d - (self.dim() - dims);
    fits = grad_output.size(d) == (axis < 0 ? self.size(d) : out[static_cast<size_t>(3 - dims + axis)]);
  }
  SCONCE_CHECK(fits, kInvalidArgument, name, ": gradOutput ", describe(grad_output), " unexpected for an input ",
               describe(self), " and padding ", to_string(padding));
  if (!is_floating(self.dtype()) && !is_complex(self.dtype())) fail_dispatch(self.dtype(), name);
  return sides;
}

}  // namespace sconce
