#include "src/tensor/spatial/resized_axes.h"

#include "sconce/check.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce {

std::array<ResampledAxis, 3> resized_axes(std::string_view name, const Tensor& grad_output, IntSpan output_size,
                                          IntSpan input_size, const std::array<OptScale, 3>& scales, int dims) {
  const auto n = static_cast<size_t>(dims);
  SCONCE_CHECK(output_size.size() == n && input_size.size() == n + 2, kInvalidArgument, name, ": It is expected ", dims,
               " output sizes and ", dims + 2, " input sizes, got ", to_string(output_size), " and ",
               to_string(input_size));
  std::array<ResampledAxis, 3> axes;
  for (size_t d = 0; d < n; ++d) axes[3 - n + d] = {input_size[d + 2], output_size[d], scales[3 - n + d]};
  for (const ResampledAxis& axis : axes)
    SCONCE_CHECK(axis.input > 0 && axis.output > 0, kInvalidArgument, name,
                 ": Input and output sizes should be greater than 0, but got input ", to_string(input_size),
                 ", output ", to_string(output_size));
  SCONCE_CHECK(input_size[0] >= 0 && input_size[1] >= 0, kInvalidArgument, name, ": input sizes ",
               to_string(input_size), " are negative");
  bool fits = grad_output.dim() == static_cast<int64_t>(n) + 2;
  for (int64_t d = 0; fits && d < grad_output.dim(); ++d)
    fits =
        grad_output.size(d) == (d < 2 ? input_size[static_cast<size_t>(d)] : output_size[static_cast<size_t>(d) - 2]);
  SCONCE_CHECK(fits, kInvalidArgument, name, ": Expected grad_output to have the same shape as output; output_size ",
               to_string(output_size), ", input_size ", to_string(input_size), " but got grad_output of ",
               to_string(grad_output.sizes()));
  if (!is_floating(grad_output.dtype())) fail_dispatch(grad_output.dtype(), name);
  return axes;
}

ResampleModes resample_modes(const std::array<ResampledAxis, 3>& axes, int dims, ResampleMode mode) noexcept {
  if (mode != ResampleMode::kCubic) return {mode, mode, mode};
  // A cubic resize to the same sizes copies, regardless of the scales.
  const bool same = axes[1].input == axes[1].output && axes[2].input == axes[2].output;
  ResampleModes modes;
  for (size_t a = 0; a < 3; ++a) modes[a] = same || a < 3 - static_cast<size_t>(dims) ? ResampleMode::kLinear : mode;
  return modes;
}

}  // namespace sconce
