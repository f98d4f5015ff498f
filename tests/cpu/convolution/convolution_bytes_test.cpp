// Quantised convolutions by every inner loop: draws on both sides of each switch, against plain loops. To the bit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <random>
#include <tuple>

#include "sconce/float_types.h"
#include "src/cpu/convolution/direct/convolution_isa.h"
#include "src/device/cpu_isa.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/convolution_reference.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

using Random = std::mt19937_64;

struct Draw {
  Tensor x, w, scales, bias, old;  // bias and old may be undefined
  Ints stride, padding, dilation;
  int64_t groups = 1, zero = 0;
  DType to = DType::kUInt8;
  int activation = 0;  // none, relu, hardtanh

  Tensor run() const {
    Tensor scale = Tensor::empty(Ints{1}, DType::kFloat32), zero_point = Tensor::empty(Ints{1}, DType::kInt64);
    *scale.data_as<float>() = 0.01f;
    *zero_point.data_as<int64_t>() = zero;
    const Tensor* b = bias.defined() ? &bias : nullptr;
    const double low = -1, high = 1.5;
    const double* const limits[] = {&low, &high};
    const auto arguments = std::span(limits).first(activation == 2 ? 2 : 0);
    const char* const name = activation == 0 ? "none" : activation == 1 ? "relu" : "hardtanh";
    if (!old.defined())
      return cpu::_qconv_pointwise_tensor(x, scale, zero_point, w, scales, Tensor(), b, stride, padding, dilation,
                                          groups, 0.05, 3, to, name, arguments, {});
    Tensor into = empty_of_format(old.sizes(), to, true);
    std::copy_n(static_cast<const std::byte*>(old.data()), into.numel() * static_cast<int64_t>(into.itemsize()),
                static_cast<std::byte*>(into.data()));
    const bool bytes = to == DType::kUInt8 || to == DType::kInt8;
    return cpu::_qconv2d_pointwise_binary_tensor(x, scale, zero_point, w, scales, Tensor(), into, b, stride, padding,
                                                 dilation, groups, 0.05, 3, to, bytes ? 0.25 : 1, bytes ? 2 : 0, "sum",
                                                 {}, name, arguments, {});
  }

  // The element at `at` [n, o, ...].
  double want(const Ints& at) const {
    const int64_t in = w.size(1), group = at[1] / (w.size(0) / groups);
    const auto spatial = static_cast<size_t>(x.dim() - 2);
    int64_t sum = 0;
    each_index(w.sizes().subspan(1), [&](const Ints& tap) {
      Ints from{at[0], group * in + tap[0]}, weight{at[1]};
      weight.insert(weight.end(), tap.begin(), tap.end());
      for (size_t d = 0; d < spatial; ++d) {
        from.push_back(at[d + 2] * stride[d] - padding[d] + tap[d + 1] * dilation[d]);
        if (from.back() < 0 || from.back() >= x.size(static_cast<int64_t>(d) + 2)) return;
      }
      sum += (static_cast<int64_t>(element(x, from)) - zero) * static_cast<int64_t>(element(w, weight));
    });
    const auto o = static_cast<size_t>(at[1]);
    const float scale = scales.data_as<float>()[scales.numel() == 1 ? 0 : o];
    float value = static_cast<float>(static_cast<int32_t>(sum)) * (0.01f * scale);
    if (bias.defined()) value += bias.data_as<float>()[o];
    const bool bytes = to == DType::kUInt8 || to == DType::kInt8;
    if (old.defined()) value += (static_cast<float>(element(old, at)) - (bytes ? 2.0f : 0.0f)) * (bytes ? 0.25f : 1.0f);
    if (activation == 1) value = std::max(value, 0.0f);
    if (activation == 2) value = std::clamp(value, -1.0f, 1.5f);
    if (to == DType::kBFloat16) return static_cast<double>(static_cast<float>(BFloat16(value)));
    if (!bytes) return static_cast<double>(value);
    const float low = to == DType::kUInt8 ? 0.0f : -128.0f, high = to == DType::kUInt8 ? 255.0f : 127.0f;
    return static_cast<double>(std::clamp(std::nearbyint(value * static_cast<float>(1 / 0.05) + 3.0f), low, high));
  }
};

Tensor bytes(const Ints& sizes, DType dtype, Random& random) {
  Tensor t = Tensor::empty(sizes, dtype);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_as<uint8_t>()[i] = static_cast<uint8_t>(random());
  return t;
}

Draw draw(Random& random) {
  const auto pick = [&](std::initializer_list<int64_t> from) { return from.begin()[random() % from.size()]; };
  Draw d;
  const auto spatial = static_cast<size_t>(pick({1, 2, 2, 2, 3}));
  int64_t in = pick({1, 3, 4, 7, 8, 16, 24, 64}), out = pick({1, 8, 15, 16, 17, 24, 48, 65, 130});
  const int64_t kind = pick({0, 0, 0, 1, 1, 2, 3});
  if (kind == 1) {  // depthwise
    in = out = pick({2, 8, 9, 16, 24, 33, 72});
    d.groups = in;
  } else if (kind == 2) {
    d.groups = pick({2, 3});
    in *= d.groups;
    out *= d.groups;
  } else if (kind == 3) {  // several channels of each input channel
    in = d.groups = pick({2, 5});
    out = in * pick({2, 9});
  }
  Ints x_sizes{pick({1, 1, 2}), in}, w_sizes{out, in / d.groups};
  const int64_t same = pick({0, 1, 1}), kernel = pick({1, 1, 2, 3, 3, 5, 7});
  for (size_t s = 0; s < spatial; ++s) {
    const int64_t k = spatial == 3 ? std::min<int64_t>(kernel, 3) : same ? kernel : pick({1, 2, 3});
    d.dilation.push_back(pick({1, 1, 1, 2}));
    d.stride.push_back(pick({1, 1, 2, 3}));
    d.padding.push_back(kernel == 1 ? pick({0, 0, 1}) : pick({0, k / 2, k}));
    const int64_t reach = (k - 1) * d.dilation[s] + 1;
    x_sizes.push_back(std::max(spatial == 3 ? pick({1, 3, 5}) : pick({1, 4, 6, 7, 9, 14, 20}), reach));
    w_sizes.push_back(k);
  }
  d.x = bytes(x_sizes, DType::kUInt8, random);
  d.w = bytes(w_sizes, DType::kInt8, random);
  if (random() % 4)
    d.x = channels_last(d.x);
  else if (random() % 3 == 0)
    d.x = with_gaps(d.x);
  if (random() % 3 == 0) d.w = channels_last(d.w);
  d.w.storage()->set_immutable(random() % 2);
  d.scales = sample(Ints{random() % 4 ? out : 1}, DType::kFloat32, random());
  for (int64_t i = 0; i < d.scales.numel(); ++i)
    d.scales.data_as<float>()[i] = 0.01f + 0.01f * std::abs(d.scales.data_as<float>()[i]);
  if (random() % 2) d.bias = sample(Ints{out}, DType::kFloat32, random());
  d.zero = pick({0, 1, 128, 255, -3, 300});
  d.to = std::initializer_list<DType>{DType::kUInt8, DType::kUInt8, DType::kInt8, DType::kFloat32, DType::kBFloat16}
             .begin()[random() % 5];
  d.activation = static_cast<int>(random() % 3);
  if (random() % 3 == 0) {
    Ints sizes{x_sizes[0], out};
    for (size_t s = 0; s < spatial; ++s)
      sizes.push_back((x_sizes[s + 2] + 2 * d.padding[s] - (w_sizes[s + 2] - 1) * d.dilation[s] - 1) / d.stride[s] + 1);
    d.activation = static_cast<int>(random() % 2);
    d.old = d.to == DType::kUInt8 || d.to == DType::kInt8 ? bytes(sizes, d.to, random) : sample(sizes, d.to, random());
    d.old = channels_last(d.old);
  }
  return d;
}

void compare(Random& random, int count) {
  for (int i = 0; i < count; ++i) {
    const Draw d = draw(random);
    set_kernel_threads(static_cast<int>(1 + random() % 4));
    const Tensor y = d.run();
    CAPTURE(i);
    CAPTURE(describe(d.x));
    CAPTURE(describe(d.w));
    CAPTURE(to_string(d.stride));
    CAPTURE(to_string(d.padding));
    CAPTURE(to_string(d.dilation));
    CAPTURE(d.zero);
    CAPTURE(dtype_name(d.to));
    CAPTURE(kernel_threads());
    int wrong = 0;
    const auto check = [&](const Ints& at) { wrong += element(y, at) != d.want(at); };
    if (y.numel() < 400) each_index(y.sizes(), check);
    for (int k = 0; k < 200; ++k) {
      Ints at;
      for (int64_t dim = 0; dim < y.dim(); ++dim)
        at.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(y.size(dim))));
      // The borders more often than the rest.
      for (size_t dim = 2; dim < at.size(); ++dim)
        if (random() % 3 == 0) at[dim] = random() % 2 ? y.size(static_cast<int64_t>(dim)) - 1 : 0;
      check(at);
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("quantised convolution: random shapes, with dot products of bytes and without") {
  const int before = kernel_threads();
  for (const bool vnni : {true, false}) {
    testing_convolution_vnni(vnni);
    CAPTURE(vnni);
    Random random(11);
    compare(random, 400);
  }
  testing_convolution_vnni(true);
  set_kernel_threads(before);
}

TEST_CASE("quantised convolution: images of more rows than a task copies at once, split among threads") {
  const int before = kernel_threads();
  for (const bool vnni : {true, false}) {
    testing_convolution_vnni(vnni);
    Random random(3);
    for (const auto& [channels, groups, kernel] : {std::tuple{96, 1, 3}, {96, 96, 3}, {96, 96, 5}, {256, 1, 1}}) {
      Draw d;
      d.x = channels_last(bytes({2, channels, 60, 61}, DType::kUInt8, random));
      d.w = bytes({channels, channels / groups, kernel, kernel}, DType::kInt8, random);
      d.scales = sample(Ints{1}, DType::kFloat32, 1);
      d.scales.data_as<float>()[0] = 0.002f;
      d.groups = groups;
      d.zero = 7;
      d.stride = {1, 1};
      d.dilation = {1, 1};
      d.padding = {kernel / 2, kernel / 2};
      for (const int threads : {1, 2, 3}) {
        set_kernel_threads(threads);
        const Tensor y = d.run();
        int wrong = 0;
        for (int k = 0; k < 500; ++k) {
          const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
          const Ints at{below(2), below(channels), below(60), below(61)};
          wrong += element(y, at) != d.want(at);
        }
        CHECK(wrong == 0);
      }
    }
  }
  testing_convolution_vnni(true);
  set_kernel_threads(before);
}
