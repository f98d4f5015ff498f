#include "src/cpu/layers/fake_quantize.h"

#include <algorithm>
#include <cmath>

#include "sconce/check.h"
#include "src/cpu/vector/row_extrema.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elementwise.h"
#include "src/tensor/fill.h"
#include "src/tensor/rules/moving_average.h"
#include "src/tensor/rules/quantisation_grid.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/view.h"

namespace sconce::cpu {
namespace {

constexpr std::string_view kName = "_fused_moving_avg_obs_fq_helper";
constexpr float kSmallestScale = 6.1e-5f;  // below it 1 / scale overflows in half precision

bool is_on(const Tensor& flag) {
  SCONCE_CHECK(flag.numel() == 1, kInvalidArgument, kName, ": observer_on and fake_quant_on must have 1 element");
  return *to_dtype(flag, DType::kInt64).data_as<int64_t>() != 0;
}

void observe(const float* values, int64_t count, double averaging, float& low, float& high) {
  const float least = best_of<false>(values, count), most = best_of<true>(values, count);
  const auto move = [averaging](float& running, float now) {
    running = std::isinf(running) ? now : running + static_cast<float>(averaging) * (now - running);
  };
  move(low, least);
  move(high, most);
}

void check_bounds(int64_t quant_min, int64_t quant_max) {
  SCONCE_CHECK(quant_min <= quant_max, kInvalidArgument,
               "fake_quantize: `quant_min` should be less than or equal to `quant_max`.");
}

constexpr std::string_view kFakeQuantize = "fake_quantize";

// Products with the inverse scale are of the input's precision: float for half types.
template <class F>
void dispatch_input(const Tensor& self, F&& f) {
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), kFakeQuantize);
  self.dtype() == DType::kFloat64 ? f.template operator()<double>() : f.template operator()<float>();
}

// Clamps a place to the range; NaN becomes the least.
struct Bounds {
  int64_t least, most;
  int64_t cut(double place) const {
    return static_cast<int64_t>(std::fmin(std::fmax(place, static_cast<double>(least)), static_cast<double>(most)));
  }
};

// For one scale and a whole zero point. Results are multiplied in float.
std::array<Tensor, 2> to_grid(const Tensor& self, float scale, int64_t zero_point, Bounds bounds) {
  Tensor out = empty_like(self), mask = empty_like(self, DType::kBool);
  dispatch_input(self, [&]<class T>() -> void {
    const T inverse = static_cast<T>(1.0f / scale), zero = static_cast<T>(zero_point),
            least = static_cast<T>(bounds.least), most = static_cast<T>(bounds.most);
    map_elements<bool, T>(kFakeQuantize, mask,
                          [=](T x) {
                            const T place = zero + std::nearbyint(x * inverse);
                            return place >= least && place <= most;
                          },
                          {&self});
    map_elements<T, T>(kFakeQuantize, out,
                       [=](T x) -> T {
                         const int64_t steps = bounds.cut(zero + std::nearbyint(x * inverse)) - zero_point;
                         return static_cast<float>(steps) * scale;
                       },
                       {&self});
  });
  return {std::move(out), std::move(mask)};
}
// Rounds to grids with a scale and zero point per channel, which broadcast to self. Products are computed in double. A
// fractional zero point is added before rounding, in float.
std::array<Tensor, 2> to_grids(const Tensor& self, const Tensor& scale, const Tensor& zero_point, Bounds bounds) {
  Tensor out = empty_like(self), mask = empty_like(self, DType::kBool);
  const bool between = is_floating(zero_point.dtype());
  dispatch_input(self, [&]<class T>() -> void {
    const auto place = [between](T x, float step, double zero) -> double {
      const T inverse = static_cast<T>(1.0f / step);
      if (between) return std::nearbyint(static_cast<float>(std::fma(x, inverse, static_cast<T>(zero))));
      return static_cast<T>(zero) + std::nearbyint(x * inverse);
    };
    map_elements<bool, T, float, double>(kFakeQuantize, mask,
                                         [=](T x, float step, double zero) {
                                           const double at = place(x, step, zero);
                                           return at >= static_cast<double>(bounds.least) &&
                                                  at <= static_cast<double>(bounds.most);
                                         },
                                         {&self, &scale, &zero_point});
    map_elements<T, T, float, double>(kFakeQuantize, out,
                                      [=](T x, float step, double zero) -> T {
                                        const auto point = static_cast<double>(bounds.cut(place(x, step, zero)));
                                        return static_cast<T>((point - zero) * static_cast<double>(step));
                                      },
                                      {&self, &scale, &zero_point});
  });
  return {std::move(out), std::move(mask)};
}

}  // namespace

// Where observer_on is not 0: running_min and running_max [1], or [C] with per_row, move towards self's range (by
// channel ch_axis) by averaging_const, from infinity at once. Where fake_quant_on is not 0: scale and zero_point are
// chosen for them, self is rounded to that grid, with a mask of what was not clamped; else a copy and all true.
// self float32; the written tensors float32, zero_point int32.
std::array<Tensor, 2> _fused_moving_avg_obs_fq_helper(const Tensor& self, const Tensor& observer_on,
                                                      const Tensor& fake_quant_on, Tensor& running_min,
                                                      Tensor& running_max, Tensor& scale, Tensor& zero_point,
                                                      double averaging_const, int64_t quant_min, int64_t quant_max,
                                                      int64_t ch_axis, bool per_row_fake_quant, bool symmetric_quant) {
  const FakeQuantisedRows shape = check_moving_average(self, running_min, running_max, scale, zero_point, quant_min,
                                                       quant_max, ch_axis, per_row_fake_quant);
  const int64_t channels = shape.channels;
  // Rows of a channel each.
  Tensor rows = contiguous(self);
  if (per_row_fake_quant && self.dim() > 1) {
    Shape order;
    order.push_back(shape.axis);
    for (int64_t d = 0; d < self.dim(); ++d)
      if (d != shape.axis) order.push_back(d);
    rows = contiguous(permute(self, order));
  }
  const int64_t each = self.numel() / channels;
  if (is_on(observer_on))
    for (int64_t c = 0; c < channels; ++c) {
      float &low = running_min.data_as<float>()[c], &high = running_max.data_as<float>()[c];
      observe(rows.data_as<float>() + c * each, each, averaging_const, low, high);
    }
  Tensor out = empty_like(self), mask = empty_like(self, DType::kBool);
  if (!is_on(fake_quant_on)) {
    copy(self, out);
    fill(mask, int64_t{1});
    return {std::move(out), std::move(mask)};
  }
  for (int64_t c = 0; c < channels; ++c) {
    const QuantisationGrid grid = choose_grid(running_min.data_as<float>()[c], running_max.data_as<float>()[c],
                                              quant_min, quant_max, symmetric_quant, kSmallestScale);
    scale.data_as<float>()[c] = grid.scale;
    zero_point.data_as<int32_t>()[c] = grid.zero_point;
  }
  const Tensor in = contiguous(self);
  Tensor rounded = Tensor::empty(self.sizes(), DType::kFloat32), kept = Tensor::empty(self.sizes(), DType::kBool);
  // Runs of elements of one channel.
  const int64_t run = shape.inner;
  const auto least = static_cast<float>(quant_min), most = static_cast<float>(quant_max);
  parallel_for(0, self.numel(), 16384, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t at = begin, next = 0; at < end; at = next) {
      next = std::min((at / run + 1) * run, end);
      const int64_t c = at / run % channels;
      const float step = scale.data_as<float>()[c], inverse = 1.0f / step;
      const auto zero = static_cast<float>(zero_point.data_as<int32_t>()[c]);
      const float* const from = in.data_as<float>();
      auto* const flags = static_cast<uint8_t*>(kept.data());
      float* const to = rounded.data_as<float>();
      for (int64_t i = at; i < next; ++i) {
        const float place = std::nearbyint(from[i] * inverse) + zero;
        flags[i] = static_cast<uint8_t>(place >= least) & static_cast<uint8_t>(place <= most);
        to[i] = (std::min(std::max(place, least), most) - zero) * step;
      }
    }
  });
  if (out.is_contiguous()) return {std::move(rounded), std::move(kept)};
  copy(rounded, out);
  copy(kept, mask);
  return {std::move(out), std::move(mask)};
}

// The same on copies of what is written, which are results 2 to 5.
std::array<Tensor, 6> _fused_moving_avg_obs_fq_helper_functional(const Tensor& self, const Tensor& observer_on,
                                                                 const Tensor& fake_quant_on, const Tensor& running_min,
                                                                 const Tensor& running_max, const Tensor& scale,
                                                                 const Tensor& zero_point, double averaging_const,
                                                                 int64_t quant_min, int64_t quant_max, int64_t ch_axis,
                                                                 bool per_row_fake_quant, bool symmetric_quant) {
  Tensor low = clone(running_min), high = clone(running_max), step = clone(scale), zero = clone(zero_point);
  auto [out, mask] =
      _fused_moving_avg_obs_fq_helper(self, observer_on, fake_quant_on, low, high, step, zero, averaging_const,
                                      quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant);
  return {std::move(out), std::move(mask), std::move(low), std::move(high), std::move(step), std::move(zero)};
}

std::array<Tensor, 2> fake_quantize_per_tensor_affine_cachemask(const Tensor& self, double scale, int64_t zero_point,
                                                                int64_t quant_min, int64_t quant_max) {
  check_bounds(quant_min, quant_max);
  SCONCE_CHECK(zero_point >= quant_min && zero_point <= quant_max, kInvalidArgument,
               "fake_quantize_per_tensor_affine: `zero_point` must be between `quant_min` and `quant_max`.");
  return to_grid(self, static_cast<float>(scale), zero_point, {quant_min, quant_max});
}

std::array<Tensor, 2> _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(const Tensor& self, const Tensor& scale,
                                                                                const Tensor& zero_point,
                                                                                const Tensor& fake_quant_enabled,
                                                                                int64_t quant_min, int64_t quant_max) {
  SCONCE_CHECK(scale.numel() == 1 && zero_point.numel() == 1, kInvalidArgument,
               "fake_quantize_per_tensor_affine: scale and zero_point must have 1 element");
  if (!is_on(fake_quant_enabled)) {
    Tensor mask = empty_like(self, DType::kBool);
    fill(mask, int64_t{1});
    return {clone(self), std::move(mask)};
  }
  check_bounds(quant_min, quant_max);
  // A zero point between the grid's points is cut to a whole one.
  const Tensor step = to_dtype(scale, DType::kFloat32), zero = to_dtype(zero_point, DType::kInt64);
  return to_grid(self, *step.data_as<float>(), *zero.data_as<int64_t>(), {quant_min, quant_max});
}

std::array<Tensor, 2> fake_quantize_per_channel_affine_cachemask(const Tensor& self, const Tensor& scale,
                                                                 const Tensor& zero_point, int64_t axis,
                                                                 int64_t quant_min, int64_t quant_max) {
  constexpr std::string_view kOperator = "fake_quantize_per_channel_affine";
  SCONCE_CHECK(axis >= 0 && axis < self.dim(), kInvalidArgument, kOperator,
               ": `axis` must be between 0 and number of dimensions of input");
  SCONCE_CHECK(scale.dim() == 1 && zero_point.dim() == 1, kInvalidArgument, kOperator,
               ": scale and zero point should be 1-D tensors");
  SCONCE_CHECK(scale.numel() == zero_point.numel() && scale.numel() == self.size(axis), kInvalidArgument, kOperator,
               ": dimensions of scale and zero-point are not consistent with input tensor");
  Shape along;
  for (int64_t d = 0; d < self.dim(); ++d) along.push_back(d == axis ? scale.numel() : 1);
  check_bounds(quant_min, quant_max);
  return to_grids(self, reshape(scale, along), reshape(zero_point, along), {quant_min, quant_max});
}

}  // namespace sconce::cpu
