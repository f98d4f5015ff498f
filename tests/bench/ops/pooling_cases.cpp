// Pooling, sampling, resizing, padding, and their gradients.
#include "tests/bench/ops/calls.h"

namespace bench {
namespace {

template <class F>
void add_max_pool(Cases& cases, const std::string& name, F* function, const Sizes& input, const Sizes& kernel,
                  const Sizes& stride, bool last = false, DType dtype = kF32) {
  cases.add(name, [=] {
    const T x = randn(input, dtype);
    const size_t n = kernel.size();
    return call<2>(function, last ? x.channels_last() : x, Ints(kernel), Ints(stride), Ints(Sizes(n, kernel[0] / 2)),
                   Ints(Sizes(n, 1)), false);
  });
}

}  // namespace

void add_pooling_cases(Cases& cases) {
  cases.family("pooling");
  const auto max2 = aoti_torch_cpu_max_pool2d_with_indices;
  add_max_pool(cases, "max_pool2d f32 1x64x112x112 3x3 stride 2", max2, {1, 64, 112, 112}, {3, 3}, {2, 2});
  add_max_pool(cases, "max_pool2d f32 channels last 1x64x112x112 3x3 stride 2", max2, {1, 64, 112, 112}, {3, 3}, {2, 2},
               true);
  add_max_pool(cases, "max_pool2d f32 8x32x32x32 2x2", max2, {8, 32, 32, 32}, {2, 2}, {2, 2});
  add_max_pool(cases, "max_pool2d bf16 1x64x56x56 3x3 stride 2", max2, {1, 64, 56, 56}, {3, 3}, {2, 2}, false, kBF16);
  add_max_pool(cases, "max_pool3d f32 1x16x16x56x56 3x3x3 stride 2", aoti_torch_cpu_max_pool3d_with_indices,
               {1, 16, 16, 56, 56}, {3, 3, 3}, {2, 2, 2});
  for (const bool last : {false, true})
    cases.add(std::string("avg_pool2d f32 ") + (last ? "channels last " : "") + "1x128x56x56 2x2", [=] {
      const T x = randn({1, 128, 56, 56});
      return call<1>(aoti_torch_cpu_avg_pool2d, last ? x.channels_last() : x, Ints{2, 2}, Ints{2, 2}, Ints{0, 0}, false,
                     true, none);
    });
  cases.add("avg_pool2d f32 1x64x56x56 3x3 padded", [] {
    return call<1>(aoti_torch_cpu_avg_pool2d, randn({1, 64, 56, 56}), Ints{3, 3}, Ints{1, 1}, Ints{1, 1}, false, false,
                   none);
  });
  cases.add("avg_pool3d f32 1x16x16x28x28 2x2x2", [] {
    return call<1>(aoti_torch_cpu_avg_pool3d, randn({1, 16, 16, 28, 28}), Ints{2, 2, 2}, Ints{2, 2, 2}, Ints{0, 0, 0},
                   false, true, none);
  });
  for (const int64_t out : {1, 7}) {
    cases.add("_adaptive_avg_pool2d f32 4x256x28x28 to " + std::to_string(out), [=] {
      return call<1>(aoti_torch_cpu__adaptive_avg_pool2d, randn({4, 256, 28, 28}), Ints{out, out});
    });
    cases.add("adaptive_max_pool2d f32 4x256x28x28 to " + std::to_string(out), [=] {
      return call<2>(aoti_torch_cpu_adaptive_max_pool2d, randn({4, 256, 28, 28}), Ints{out, out});
    });
  }
  cases.add("_adaptive_avg_pool3d f32 1x64x8x14x14 to 4x7x7", [] {
    return call<1>(aoti_torch_cpu__adaptive_avg_pool3d, randn({1, 64, 8, 14, 14}), Ints{4, 7, 7});
  });
  cases.add("fractional_max_pool2d f32 1x32x56x56 to 28", [] {
    return call<2>(aoti_torch_cpu_fractional_max_pool2d, randn({1, 32, 56, 56}), Ints{2, 2}, Ints{28, 28},
                   uniform({1, 32, 2}, 0, 1));
  });
  const auto pooled = [](T& indices) {
    const T x = randn({1, 64, 56, 56});
    AtenTensorHandle out[2];
    const Ints two{2, 2}, zero{0, 0}, one{1, 1};
    check(aoti_torch_cpu_max_pool2d_with_indices(x.get(), two.values.data(), 2, two.values.data(), 2,
                                                 zero.values.data(), 2, one.values.data(), 2, false, &out[0], &out[1]));
    indices = T(out[1]);
    return T(out[0]);
  };
  cases.add("max_unpool2d f32 1x64x28x28", [=] {
    T indices;
    const T x = pooled(indices);
    return call<1>(aoti_torch_cpu_max_unpool2d, x, indices, Ints{56, 56});
  });
  cases.add("max_pool2d backward f32 1x64x28x28", [=] {
    T indices;
    pooled(indices);
    return call<1>(aoti_torch_cpu_max_pool2d_with_indices_backward, randn({1, 64, 28, 28}), randn({1, 64, 56, 56}),
                   Ints{2, 2}, Ints{2, 2}, Ints{0, 0}, Ints{1, 1}, false, indices);
  });
  cases.add("avg_pool2d backward f32 1x64x28x28", [] {
    return call<1>(aoti_torch_cpu_avg_pool2d_backward, randn({1, 64, 28, 28}), randn({1, 64, 56, 56}), Ints{2, 2},
                   Ints{2, 2}, Ints{0, 0}, false, true, none);
  });
  cases.add("_adaptive_avg_pool2d backward f32 4x256x7x7", [] {
    return call<1>(aoti_torch_cpu__adaptive_avg_pool2d_backward, randn({4, 256, 7, 7}), randn({4, 256, 28, 28}));
  });

  cases.family("sampling, resizing, padding");
  cases.add("grid_sampler_3d f32 1x8x16x32x32 bilinear", [] {
    return call<1>(aoti_torch_cpu_grid_sampler_3d, randn({1, 8, 16, 32, 32}), uniform({1, 16, 32, 32, 3}, -1, 1), 0, 0,
                   false);
  });
  cases.add("grid_sampler_2d backward f32 1x16x64x64", [] {
    return call<2>(aoti_torch_cpu_grid_sampler_2d_backward, randn({1, 16, 64, 64}), randn({1, 16, 64, 64}),
                   uniform({1, 64, 64, 2}, -1, 1), 0, 0, false, Flags{{1, 1}});
  });
  cases.add("upsample_bicubic2d backward f32 1x16x64x64", [] {
    return call<1>(aoti_torch_cpu_upsample_bicubic2d_backward, randn({1, 16, 64, 64}), Ints{64, 64},
                   Ints{1, 16, 32, 32}, false, none, none);
  });
  cases.add("upsample_linear1d backward f32 4x64x1024", [] {
    return call<1>(aoti_torch_cpu_upsample_linear1d_backward, randn({4, 64, 1024}), Ints{1024}, Ints{4, 64, 512}, false,
                   none);
  });
  cases.add("pad f32 constant 1x64x56x56 by 1", [] {
    return call<1>(aoti_torch_cpu_pad, randn({1, 64, 56, 56}), Ints{1, 1, 1, 1}, "constant", none);
  });
  cases.add("pad f32 reflect 1x32x64x64 by 3", [] {
    return call<1>(aoti_torch_cpu_pad, randn({1, 32, 64, 64}), Ints{3, 3, 3, 3}, "reflect", none);
  });
  cases.add("replication_pad2d backward f32 1x32x64x64", [] {
    return call<1>(aoti_torch_cpu_replication_pad2d_backward, randn({1, 32, 66, 66}), randn({1, 32, 64, 64}),
                   Ints{1, 1, 1, 1});
  });
}

}  // namespace bench
