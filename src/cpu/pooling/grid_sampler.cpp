#include "src/cpu/pooling/grid_sampler.h"

#include <immintrin.h>

#include <cmath>
#include <type_traits>

#include "src/operators/cpu_ops.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/spatial/grid_geometry.h"
#include "src/tensor/spatial/grid_taps.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

// Which of ATen's two loops is matched. They differ for coordinates that are NaN.
enum class GridLoop { kVectors, kScalars };

void follow(GridLoop loop, GridNan scalars, GridGeometry& g) noexcept {
  if (loop == GridLoop::kVectors) return;
  g.nan = scalars;
  g.outside_counts = g.interpolation == GridInterpolation::kCubic;
}

std::array<Tensor, 2> backward(std::string_view name, const Tensor& grad_output, const Tensor& input,
                               const Tensor& grid, int64_t interpolation, int64_t padding, bool align_corners,
                               std::span<const int32_t> output_mask, int dims, GridLoop loop) {
  GridGeometry g = grid_geometry(name, input, grid, interpolation, padding, align_corners, dims);
  follow(loop, g.interpolation == GridInterpolation::kCubic ? GridNan::kLast : GridNan::kOutside, g);
  const Shape sizes = grid_sampled_sizes(input, grid);
  check_grid_gradient(name, grad_output, input, sizes, output_mask);
  const DType dtype = summed_dtype(input.dtype());
  const auto packed = [&](const Tensor& t) { return contiguous(to_dtype(t, dtype)); };
  const Tensor in = packed(input), places = packed(grid), grads = packed(grad_output);
  Tensor by_input, by_grid = Tensor::empty(grid.sizes(), dtype);
  if (output_mask[0]) {
    by_input = Tensor::empty(input.sizes(), dtype);
    zero(by_input);
  }
  dispatch_float_double(dtype, name, [&]<class T>() {
    // Threads take batches: two places of one image may draw on the same element. Some places at a time, a channel
    // after the other, so that memory is walked through in order.
    constexpr int64_t kTaps = 1024, kMaxPlaces = 64;
    const int64_t most = std::min(kMaxPlaces, kTaps / grid_tap_count(g));
    const bool outside_counts = g.outside_counts && g.channels > 0;
    for_planes(g.batch, g.channels * g.out_plane * 8, [&](int64_t n) noexcept {
      GridTap<T> taps[kTaps];
      T products[kTaps];
      T slopes[kMaxPlaces][3];
      int ends[kMaxPlaces];  // of a place's taps within the input
      for (int64_t first = 0; first < g.out_plane; first += most) {
        const int64_t block = std::min(most, g.out_plane - first);
        const T* const at = places.data_as<T>() + (n * g.out_plane + first) * g.dims;
        int used = 0;
        for (int64_t i = 0; i < block; ++i) {
          GridTap<T> all[kMaxGridTaps];
          const int count = grid_taps(g, at + i * g.dims, all);
          std::fill_n(slopes[i], 3, T(0));
          for (int k = 0; k < count; ++k)
            if (all[k].offset >= 0)
              taps[used++] = all[k];
            else if (outside_counts)
              for (int d = 0; d < g.dims; ++d) slopes[i][d] += 0 * all[k].slope[d];
          ends[i] = used;
        }
        std::fill_n(products, used, T(0));
        for (int64_t c = 0; c < g.channels; ++c) {
          const T* const own = grads.data_as<T>() + (n * g.channels + c) * g.out_plane + first;
          const int64_t plane = (n * g.channels + c) * g.in_plane;
          const T* const values = in.data_as<T>() + plane;
          T* const sums = output_mask[0] ? by_input.data_as<T>() + plane : nullptr;
          for (int64_t i = 0, k = 0; i < block; ++i)
            for (; k < ends[i]; ++k) {
              products[k] += values[taps[k].offset] * own[i];
              if (sums) sums[taps[k].offset] += taps[k].weight * own[i];
            }
        }
        for (int64_t i = 0, k = 0; i < block; ++i) {
          for (; k < ends[i]; ++k)
            for (int d = 0; d < g.dims; ++d) slopes[i][d] += products[k] * taps[k].slope[d];
          std::copy_n(slopes[i], g.dims, by_grid.data_as<T>() + (n * g.out_plane + first + i) * g.dims);
        }
      }
    });
  });
  return {by_input.defined() ? to_dtype(by_input, input.dtype()) : Tensor(), to_dtype(by_grid, grid.dtype())};
}

// The taps of some places, by tap.
template <class T, class Offset, int kMost>
struct TapBlock {
  static constexpr int64_t kPlaces = 1024 / kMost;
  // inside: all bits, or none; offset is 0 outside. Where a weight of NaN counts outside, it does so inside, at 0.
  Offset offset[kMost][kPlaces], inside[kMost][kPlaces];
  T weight[kMost][kPlaces];
  int taps = 0;

  void of_any(const GridGeometry& g, const T* places, int64_t count) noexcept {
    const bool outside_counts = g.outside_counts;
    for (int64_t i = 0; i < count; ++i) {
      GridTap<T> all[kMost];
      taps = grid_taps(g, places + i * g.dims, all);
      for (int k = 0; k < taps; ++k) {
        const bool counts = all[k].offset >= 0 || (outside_counts && all[k].weight != all[k].weight);
        inside[k][i] = -static_cast<Offset>(counts);
        offset[k][i] = static_cast<Offset>(std::max<int64_t>(all[k].offset, 0));
        weight[k][i] = all[k].weight;
      }
    }
  }
  // The four neighbours in a plane; no reflection.
  void of_bilinear(const GridGeometry& g, const T* places, int64_t count) noexcept {
    T upper[2][kPlaces];
    Offset first[2][kPlaces];
    for (int d = 0; d < 2; ++d) {
      const T size = static_cast<T>(g.size[d]), last = size - 1;
      const bool border = g.padding == GridPadding::kBorder;
      for (int64_t i = 0; i < count; ++i) {
        const T grid = places[2 * i + d];
        // Multiplied by half the size, as in ATen, so that large coordinates do not overflow.
        const T raw = g.align_corners ? (grid + 1) * (last / 2) : (grid + 1) * (size / 2) - T(0.5);
        const T above = raw > 0 ? raw : raw != raw && g.nan == GridNan::kLast ? last : T(0);
        const T clipped = above >= last ? last : above;
        const T at = border ? clipped : raw;
        const T floor = std::floor(at);
        // Far away, infinite and NaN coordinates end outside.
        const T near = floor > T(-1e9) && floor < T(1e9) ? floor : T(-100);
        first[d][i] = static_cast<Offset>(near);
        upper[d][i] = at - floor;
      }
    }
    taps = 4;
    using Unsigned = std::make_unsigned_t<Offset>;  // far outside, it wraps
    const auto width = static_cast<Offset>(g.size[0]), height = static_cast<Offset>(g.size[1]);
    for (int k = 0; k < 4; ++k)
      for (int64_t i = 0; i < count; ++i) {
        const Offset x = first[0][i] + (k & 1), y = first[1][i] + (k >> 1);
        const Offset is_inside = -static_cast<Offset>((x >= 0) & (x < width) & (y >= 0) & (y < height));
        const auto at = static_cast<Unsigned>(y) * static_cast<Unsigned>(width) + static_cast<Unsigned>(x);
        offset[k][i] = static_cast<Offset>(at) & is_inside;
        const T part = (k & 1 ? upper[0][i] : 1 - upper[0][i]) * (k >> 1 ? upper[1][i] : 1 - upper[1][i]);
        weight[k][i] = part;
        inside[k][i] = is_inside | -static_cast<Offset>(g.outside_counts && part != part);
      }
  }
};

// sums[i] += plane[offset[i]] * weight[i] where that is inside, for a multiple of 8 places.
inline void add_tap(const float* plane, const int32_t* offset, const int32_t* inside, const float* weight,
                    int64_t count, float* sums) noexcept {
  for (int64_t i = 0; i < count; i += 8) {
    const __m256i mask = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(inside + i));
    const __m256 value = _mm256_mask_i32gather_ps(_mm256_setzero_ps(), plane,
                                                  _mm256_loadu_si256(reinterpret_cast<const __m256i*>(offset + i)),
                                                  _mm256_castsi256_ps(mask), 4);
    const __m256 product = _mm256_and_ps(_mm256_mul_ps(value, _mm256_loadu_ps(weight + i)), _mm256_castsi256_ps(mask));
    _mm256_storeu_ps(sums + i, _mm256_add_ps(_mm256_loadu_ps(sums + i), product));
  }
}
template <class T, class Offset>
void add_tap(const T* plane, const Offset* offset, const Offset* inside, const T* weight, int64_t count,
             T* sums) noexcept {
  for (int64_t i = 0; i < count; ++i) sums[i] += inside[i] ? plane[offset[i]] * weight[i] : T(0);
}

// Some places at a time, a channel after the other.
template <class T, class Offset, int kMost>
void sample(const GridGeometry& g, const T* in, const T* places, T* out) {
  using Block = TapBlock<T, Offset, kMost>;
  const int64_t blocks = (g.out_plane + Block::kPlaces - 1) / Block::kPlaces;
  const bool bilinear =
      g.dims == 2 && g.interpolation == GridInterpolation::kLinear && g.padding != GridPadding::kReflection;
  for_planes(g.batch * blocks, g.channels * Block::kPlaces * 8, [&](int64_t block) noexcept {
    const int64_t n = block / blocks, first = block % blocks * Block::kPlaces,
                  size = std::min(Block::kPlaces, g.out_plane - first), whole = (size + 7) / 8 * 8;
    Block taps;
    const T* const at = places + (n * g.out_plane + first) * g.dims;
    bilinear ? taps.of_bilinear(g, at, size) : taps.of_any(g, at, size);
    for (int k = 0; k < taps.taps; ++k)
      for (int64_t i = size; i < whole; ++i) {
        taps.inside[k][i] = taps.offset[k][i] = 0;
        taps.weight[k][i] = 0;
      }
    for (int64_t c = 0; c < g.channels; ++c) {
      T sums[Block::kPlaces] = {};
      for (int k = 0; k < taps.taps; ++k)
        add_tap(in + (n * g.channels + c) * g.in_plane, taps.offset[k], taps.inside[k], taps.weight[k], whole, sums);
      std::copy_n(sums, size, out + (n * g.channels + c) * g.out_plane + first);
    }
  });
}

Tensor sampled(std::string_view name, const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding,
               bool align_corners, int dims, GridLoop loop) {
  GridGeometry g = grid_geometry(name, input, grid, interpolation, padding, align_corners, dims);
  follow(loop, GridNan::kLast, g);
  const DType dtype = summed_dtype(input.dtype());
  const Tensor in = contiguous(to_dtype(input, dtype)), places = contiguous(to_dtype(grid, dtype));
  Tensor out = Tensor::empty(grid_sampled_sizes(input, grid), dtype);
  dispatch_float_double(dtype, name, [&]<class T>() {
    const auto run = [&]<class Offset>(Offset) {
      const auto f = grid_tap_count(g) > 16 ? sample<T, Offset, kMaxGridTaps> : sample<T, Offset, 16>;
      f(g, in.data_as<T>(), places.data_as<T>(), out.data_as<T>());
    };
    g.in_plane <= INT32_MAX ? run(int32_t{}) : run(int64_t{});
  });
  return to_dtype(out, input.dtype());
}

}  // namespace

Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners) {
  return sampled("grid_sampler_2d", input, grid, interpolation_mode, padding_mode, align_corners, 2,
                 GridLoop::kVectors);
}
Tensor grid_sampler_2d_cpu_fallback(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                                    int64_t padding_mode, bool align_corners) {
  return sampled("_grid_sampler_2d_cpu_fallback", input, grid, interpolation_mode, padding_mode, align_corners, 2,
                 GridLoop::kScalars);
}
Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners) {
  return sampled("grid_sampler_3d", input, grid, interpolation_mode, padding_mode, align_corners, 3,
                 GridLoop::kScalars);
}
// Gradients by input (undefined where output_mask[0] is 0) and by grid.
std::array<Tensor, 2> grid_sampler_2d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                               int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                               std::span<const int32_t> output_mask) {
  return backward("grid_sampler_2d_backward", grad_output, input, grid, interpolation_mode, padding_mode, align_corners,
                  output_mask, 2, GridLoop::kVectors);
}
std::array<Tensor, 2> grid_sampler_2d_cpu_fallback_backward(const Tensor& grad_output, const Tensor& input,
                                                            const Tensor& grid, int64_t interpolation_mode,
                                                            int64_t padding_mode, bool align_corners) {
  static constexpr int32_t kBoth[2] = {1, 1};
  return backward("_grid_sampler_2d_cpu_fallback_backward", grad_output, input, grid, interpolation_mode, padding_mode,
                  align_corners, kBoth, 2, GridLoop::kScalars);
}
std::array<Tensor, 2> grid_sampler_3d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                               int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                               std::span<const int32_t> output_mask) {
  return backward("grid_sampler_3d_backward", grad_output, input, grid, interpolation_mode, padding_mode, align_corners,
                  output_mask, 3, GridLoop::kScalars);
}

}  // namespace sconce::cpu
