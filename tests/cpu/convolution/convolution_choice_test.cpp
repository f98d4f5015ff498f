// Which code computes a convolution: draws on both sides of each switch, against sums in double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <random>

#include "src/cpu/convolution/convolution.h"
#include "src/cpu/convolution/onednn_convolution.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/convolution_reference.h"
#include "tests/cpu/onednn_use.h"

using namespace sconce;
using namespace sconce::testing;
using onednn::Use;

namespace {

struct Draw {
  Tensor x, w, bias, other;  // bias and other may be undefined
  Ints stride, padding;
  bool transposed = false;
  int64_t groups = 1;

  Tensor run() const {
    const Ints one(stride.size(), 1), none(stride.size(), 0);
    const Tensor* b = bias.defined() ? &bias : nullptr;
    if (!other.defined()) return cpu::convolution(x, w, b, stride, padding, one, transposed, none, groups);
    const double* scalars[] = {nullptr};
    return cpu::mkldnn__convolution_pointwise_binary(x, other, w, b, padding, stride, one, groups, "add", 1.0, "relu",
                                                     std::span(scalars).first(0), "");
  }

  // Whether the library computes it; its result is thrown away.
  bool is_librarys() const {
    const Ints one(stride.size(), 1);
    const ConvolutionShape shape =
        convolution_shape({"test", stride, padding, one, {}, transposed, groups}, x.sizes(), w.sizes(), nullptr);
    Tensor output = convolution_output(shape, x.dtype(), x.stride(1) == 1);
    ConvolutionOperands operands;
    operands.input = activation_view(x);
    operands.weight = weight_view(shape, w);
    if (w.storage()->immutable()) operands.constant = w.storage().get();
    return onednn::convolve(shape, operands, output);
  }

  // How far this output of a plane is from the sum in double, over the sum of absolute values.
  double error(const Tensor& y, const Ints& at) const {
    double sum = bias.defined() ? element(bias, {at[1]}) : 0, size = std::abs(sum);
    const int64_t out = y.size(1), in = x.size(1), in_each = in / groups, group = at[1] / (out / groups);
    for (int64_t ky = 0; ky < w.size(2); ++ky)
      for (int64_t kx = 0; kx < w.size(3); ++kx) {
        int64_t iy = at[2] * stride[0] - padding[0] + ky, ix = at[3] * stride[1] - padding[1] + kx;
        if (transposed) {
          iy = at[2] + padding[0] - ky;
          ix = at[3] + padding[1] - kx;
          if (iy % stride[0] || ix % stride[1]) continue;
          iy /= stride[0];
          ix /= stride[1];
        }
        if (iy < 0 || ix < 0 || iy >= x.size(2) || ix >= x.size(3)) continue;
        for (int64_t c = 0; c < in_each; ++c) {
          const Ints weight_at =
              transposed ? Ints{group * in_each + c, at[1] % (out / groups), ky, kx} : Ints{at[1], c, ky, kx};
          const double term = element(x, {at[0], group * in_each + c, iy, ix}) * element(w, weight_at);
          sum += term;
          size += std::abs(term);
        }
      }
    if (other.defined()) {
      const double with = element(other, at);
      sum = std::max(0.0, sum + with);
      size += std::abs(with);
    }
    return std::abs(element(y, at) - sum) / std::max(size, 1e-30);
  }
};

using Random = std::mt19937_64;

Draw draw(Random& random) {
  const auto pick = [&](std::initializer_list<int64_t> from) { return from.begin()[random() % from.size()]; };
  Draw d;
  const DType dtype = random() % 4 ? DType::kFloat32 : DType::kBFloat16;
  const int64_t kernel = pick({1, 1, 2, 3, 3, 5}), stride = pick({1, 1, 2}), padding = pick({0, kernel / 2});
  const int64_t side = pick({1, 2, 3, 5, 6, 7, 11, 12, 24, 59, 60});
  const int64_t height = std::max(side, kernel), width = std::max(pick({1, side, side}), kernel);
  const bool large = height * width > 300;
  d.stride = {stride, stride};
  d.padding = {padding, padding};
  d.transposed = random() % 6 == 0;
  int64_t in = pick({3, 16, 31, 32, 33, 48, 64}), out = pick({4, 8, 12, 20, 24, 25, 31, 32, 40, 64});
  if (!large && random() % 2) in = 64, out = pick({96, 128, 192, 320});
  if (random() % 5 == 0) {
    d.groups = pick({2, in});
    in = d.groups == 2 ? in / 2 * 2 : in;
    out = d.groups == 2 ? out / 2 * 2 : in;
    d.groups = std::min(d.groups, in);
  }
  const int64_t batch = large ? 1 : pick({1, 1, 2, 5, 40});
  d.x = sample(Ints{batch, in, height, width}, dtype, random());
  d.w = sample(d.transposed ? Ints{in, out / d.groups, kernel, kernel} : Ints{out, in / d.groups, kernel, kernel},
               dtype, random());
  if (random() % 2) d.x = channels_last(d.x);
  if (random() % 2) d.w = channels_last(d.w);
  if (random() % 2) d.bias = sample(Ints{out}, dtype, random());
  d.w.storage()->set_immutable(random() % 2);
  if (!d.transposed && random() % 3 == 0) {
    d.other = sample(
        Ints{batch, out, (height + 2 * padding - kernel) / stride + 1, (width + 2 * padding - kernel) / stride + 1},
        dtype, random());
    if (d.x.stride(1) == 1) d.other = channels_last(d.other);
  }
  return d;
}

// A float32 convolution of stride 1, padded to the size of its input.
bool takes(bool last, int64_t in, int64_t out, int64_t height, int64_t width, int64_t kernel, bool constant = true,
           DType dtype = DType::kFloat32, int64_t groups = 1) {
  Draw d;
  d.x = sample(Ints{1, in, height, width}, dtype, 1);
  d.w = sample(Ints{out, in / groups, kernel, kernel}, dtype, 2);
  if (last) d.x = channels_last(d.x);
  d.w.storage()->set_immutable(constant);
  d.stride = {1, 1};
  d.padding = {kernel / 2, kernel / 2};
  d.groups = groups;
  return d.is_librarys();
}

}  // namespace

TEST_CASE("convolution: any code that may compute it, random shapes") {
  Random random(5);
  const int before = kernel_threads();
  int ours = 0, librarys = 0;
  for (int i = 0; i < 240; ++i) {
    const Draw d = draw(random);
    const Use use = i % 2 ? Use::kByPolicy : i % 4 ? Use::kAlways : Use::kNever;
    const Using library(use);
    set_kernel_threads(static_cast<int>(1 + random() % 3));
    const Tensor y = d.run();
    CAPTURE(i);
    CAPTURE(describe(d.x));
    CAPTURE(describe(d.w));
    CAPTURE(d.stride[0]);
    CAPTURE(d.padding[0]);
    CAPTURE(d.transposed);
    CAPTURE(kernel_threads());
    double worst = 0;
    for (int k = 0; k < 60; ++k) {
      Ints at;
      for (int64_t dim = 0; dim < 4; ++dim)
        at.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(y.size(dim))));
      worst = std::max(worst, d.error(y, at));
    }
    CHECK(worst <= (d.x.dtype() == DType::kFloat32 ? 2e-6 : 8e-3));
    if (use == Use::kByPolicy && d.x.dtype() == DType::kFloat32) (d.is_librarys() ? librarys : ours) += 1;
  }
  set_kernel_threads(before);
  CHECK(ours >= 10);
  if (onednn::suits(DType::kFloat32) && onednn::available()) CHECK(librarys >= 10);
}

TEST_CASE("oneDNN: the convolutions that are its own") {
  if (!onednn::suits(DType::kFloat32) || !onednn::available()) {
    MESSAGE("skipped: oneDNN does not serve float32 here");
    return;
  }
  const Using policy(Use::kByPolicy);
  CHECK(takes(true, 64, 64, 12, 12, 3));
  CHECK_FALSE(takes(true, 64, 64, 7, 7, 3));  // 1.8 million multiplications
  // Halves of a vector of channels.
  CHECK_FALSE(takes(true, 256, 24, 12, 24, 3));
  CHECK(takes(true, 256, 25, 12, 24, 3));
  CHECK(takes(true, 256, 40, 12, 24, 3));
  // Copies of row-major images.
  CHECK(takes(false, 32, 32, 24, 24, 3));
  CHECK_FALSE(takes(false, 31, 32, 24, 24, 3));
  CHECK_FALSE(takes(false, 32, 31, 24, 24, 3));
  CHECK(takes(false, 32, 32, 56, 64, 3));
  CHECK_FALSE(takes(false, 32, 32, 56, 65, 3));
  CHECK_FALSE(takes(false, 128, 128, 24, 24, 1));
  // Weights that are no constants.
  CHECK_FALSE(takes(true, 128, 128, 1, 31, 3, false));
  CHECK(takes(true, 128, 128, 1, 32, 3, false));
  CHECK(takes(true, 128, 128, 1, 31, 3, true));
  CHECK_FALSE(takes(true, 256, 256, 1, 127, 1, false));
  CHECK(takes(true, 256, 256, 1, 128, 1, false));
  CHECK(takes(true, 256, 256, 1, 127, 1, true));
  // Depthwise.
  CHECK(takes(true, 672, 672, 7, 7, 3, false, DType::kFloat32, 672));
  CHECK_FALSE(takes(true, 512, 512, 7, 7, 3, true, DType::kFloat32, 512));
  CHECK_FALSE(takes(false, 672, 672, 7, 7, 3, true, DType::kFloat32, 672));
  if (!onednn::suits(DType::kBFloat16)) return;
  CHECK(takes(true, 64, 24, 7, 7, 3, false, DType::kBFloat16));
  CHECK(takes(false, 31, 24, 60, 60, 3, false, DType::kBFloat16));
}
