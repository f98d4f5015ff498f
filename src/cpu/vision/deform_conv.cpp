// Deformable convolution: for each image a matrix of sampled elements, [channels * kernel, out_height * out_width],
// which the weights are multiplied with.
#include "src/cpu/matmul/gemm/gemm.h"
#include "src/cpu/vision/vision.h"
#include "src/cpu/vision/vision_dtypes.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/spatial/deform_taps.h"
#include "src/tensor/spatial/region_geometry.h"

namespace sconce::cpu {
namespace {

constexpr int64_t kBlock = 64;  // places of a tap that are found at once, for all channels of its offset group

template <class T>
struct ImageParts {
  const T *input, *offset, *mask;
};

// The columns of one tap of one offset group, for places [first, first + count).
template <class T>
void sample_block(const DeformGeometry& g, const ImageParts<T>& image, int64_t group, int64_t tap, int64_t first,
                  int64_t count, T* columns) noexcept {
  using N = RoundedNumber<T>;
  using F = PlainNumber<T>;
  const int64_t plane = g.out_plane(), row = group * g.kernel() + tap;
  const T *const down = image.offset + 2 * row * plane, *const across = down + plane;
  const T* const scale = g.masked ? image.mask + row * plane : nullptr;
  const int64_t ky = tap / g.kernel_width * g.dilation_height - g.pad_height;
  const int64_t kx = tap % g.kernel_width * g.dilation_width - g.pad_width;
  DeformTap<T> taps[kBlock];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = first + i;
    const N y = N(static_cast<F>(place / g.out_width * g.stride_height + ky)) + N(down[place]);
    const N x = N(static_cast<F>(place % g.out_width * g.stride_width + kx)) + N(across[place]);
    taps[i] = DeformTap<T>(y, x, g.height, g.width);
  }
  const int64_t each = g.channels / g.offset_groups;
  for (int64_t c = group * each; c < (group + 1) * each; ++c) {
    const T* const in = image.input + c * g.height * g.width;
    T* const to = columns + (c * g.kernel() + tap) * plane + first;
    for (int64_t i = 0; i < count; ++i) {
      const N value = taps[i].value(in);
      to[i] = static_cast<T>(scale ? N(scale[first + i]) * value : value);
    }
  }
}

template <class T>
void sample(const DeformGeometry& g, const ImageParts<T>& image, T* columns) noexcept {
  const int64_t blocks = (g.out_plane() + kBlock - 1) / kBlock;
  for_planes(g.offset_groups * g.kernel() * blocks, g.channels / g.offset_groups * kBlock * 4,
             [&](int64_t index) noexcept {
               const int64_t block = index % blocks, tap = index / blocks % g.kernel();
               const int64_t first = block * kBlock;
               sample_block(g, image, index / blocks / g.kernel(), tap, first, std::min(kBlock, g.out_plane() - first),
                            columns);
             });
}

template <class T>
void add_bias(const T* bias, int64_t channels, int64_t plane, T* out) noexcept {
  using N = RoundedNumber<T>;
  for_planes(channels, plane, [&](int64_t c) noexcept {
    const N shift(bias[c]);
    for (int64_t i = c * plane; i < (c + 1) * plane; ++i) out[i] = static_cast<T>(N(out[i]) + shift);
  });
}

}  // namespace

Tensor deform_conv2d(const Tensor& input, const Tensor& weight, const Tensor& offset, const Tensor& mask,
                     const Tensor& bias, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w,
                     int64_t dilation_h, int64_t dilation_w, int64_t groups, int64_t offset_groups, bool use_mask) {
  DeformGeometry g{};
  g.stride_height = stride_h;
  g.stride_width = stride_w;
  g.pad_height = pad_h;
  g.pad_width = pad_w;
  g.dilation_height = dilation_h;
  g.dilation_width = dilation_w;
  g.groups = groups;
  g.offset_groups = offset_groups;
  g.masked = use_mask;
  check_deform({input, weight, offset, mask, bias}, g);
  const int64_t sizes[] = {g.batch, g.out_channels, g.out_height, g.out_width};
  Tensor out = Tensor::empty(sizes, input.dtype());
  if (out.numel() == 0) return out;
  const Tensor in = contiguous(input), weights = contiguous(weight), offsets = contiguous(offset);
  const Tensor masks = use_mask ? contiguous(mask) : mask, shifts = contiguous(bias);
  const int64_t plane = g.out_plane(), rows = g.channels * g.kernel(), taps = g.offset_groups * g.kernel();
  dispatch_vision(input.dtype(), "deformable_im2col", [&]<class T>() {
    const int64_t matrix[] = {rows, plane};
    Tensor columns = Tensor::empty(matrix, input.dtype());
    for (int64_t b = 0; b < g.batch; ++b) {
      sample(g,
             ImageParts<T>{in.data_as<T>() + b * g.channels * g.height * g.width,
                           offsets.data_as<T>() + b * 2 * taps * plane,
                           use_mask ? masks.data_as<T>() + b * taps * plane : nullptr},
             columns.data_as<T>());
      T* const to = out.data_as<T>() + b * g.out_channels * plane;
      const int64_t m = g.out_channels / g.groups, k = rows / g.groups;
      MatrixProduct product{input.dtype(),
                            g.groups,
                            m,
                            plane,
                            k,
                            {weights.data(), m * k, k, 1},
                            {columns.data(), k * plane, plane, 1},
                            {},
                            to,
                            m * plane,
                            plane,
                            1};
      product.beta = 0;
      matrix_product("deform_conv2d", product);
      add_bias(shifts.data_as<T>(), g.out_channels, plane, to);
    }
  });
  return out;
}

}  // namespace sconce::cpu
