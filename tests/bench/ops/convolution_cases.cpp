// Convolutions, their gradients, recurrent layers.
#include "tests/bench/ops/calls.h"

namespace bench {
namespace {

struct Shape {
  Sizes input, weight, stride, padding;
  int64_t groups = 1;
  bool transposed = false;
  DType dtype = kF32;
  bool last = false;
};

void add_convolution(Cases& cases, const std::string& name, const Shape& s) {
  cases.add("convolution " + name, [=] {
    T x = randn(s.input, s.dtype), w = randn(s.weight, s.dtype);
    if (s.last) x = x.channels_last(), w = w.channels_last();
    const size_t n = s.stride.size();
    const T bias = randn({s.transposed ? s.weight[1] * s.groups : s.weight[0]}, s.dtype);
    return call<1>(aoti_torch_cpu_convolution, x, constant(w), Opt(bias), Ints(s.stride), Ints(s.padding),
                   Ints(Sizes(n, 1)), s.transposed, Ints(Sizes(n, 0)), s.groups);
  });
}
void add_backward(Cases& cases, const std::string& name, const Shape& s, const Sizes& output) {
  cases.add("convolution_backward " + name, [=] {
    const size_t n = s.stride.size();
    return call<3>(aoti_torch_cpu_convolution_backward, randn(output), randn(s.input), constant(randn(s.weight)),
                   Absent{}, Ints(s.stride), Ints(s.padding), Ints(Sizes(n, 1)), false, Ints(Sizes(n, 0)), s.groups,
                   Flags{{1, 1, 0}});
  });
}

// Small, so that recurrent steps do not amplify rounding.
T weight(const Sizes& sizes) { return constant(uniform(sizes, -0.06, 0.06)); }

}  // namespace

void add_convolution_cases(Cases& cases) {
  cases.family("convolution");
  add_convolution(cases, "2d f32 1x64x56x56 3x3", {{1, 64, 56, 56}, {64, 64, 3, 3}, {1, 1}, {1, 1}});
  add_convolution(cases, "2d f32 1x3x224x224 7x7 stride 2", {{1, 3, 224, 224}, {64, 3, 7, 7}, {2, 2}, {3, 3}});
  add_convolution(cases, "2d f32 1x256x14x14 1x1", {{1, 256, 14, 14}, {1024, 256, 1, 1}, {1, 1}, {0, 0}});
  add_convolution(cases, "2d f32 8x128x28x28 3x3 stride 2", {{8, 128, 28, 28}, {128, 128, 3, 3}, {2, 2}, {1, 1}});
  add_convolution(cases, "2d f32 4x3x224x224 16x16 patches", {{4, 3, 224, 224}, {384, 3, 16, 16}, {16, 16}, {0, 0}});
  add_convolution(cases, "2d f32 channels last 1x64x56x56 3x3",
                  {{1, 64, 56, 56}, {64, 64, 3, 3}, {1, 1}, {1, 1}, 1, false, kF32, true});
  add_convolution(cases, "2d f32 channels last 4x128x28x28 1x1",
                  {{4, 128, 28, 28}, {512, 128, 1, 1}, {1, 1}, {0, 0}, 1, false, kF32, true});
  add_convolution(cases, "2d f32 8 groups 2x128x28x28 3x3", {{2, 128, 28, 28}, {128, 16, 3, 3}, {1, 1}, {1, 1}, 8});
  add_convolution(cases, "2d bf16 1x64x56x56 3x3", {{1, 64, 56, 56}, {64, 64, 3, 3}, {1, 1}, {1, 1}, 1, false, kBF16});
  add_convolution(cases, "depthwise f32 1x96x56x56 3x3", {{1, 96, 56, 56}, {96, 1, 3, 3}, {1, 1}, {1, 1}, 96});
  add_convolution(cases, "depthwise f32 channels last 1x96x56x56 7x7",
                  {{1, 96, 56, 56}, {96, 1, 7, 7}, {1, 1}, {3, 3}, 96, false, kF32, true});
  add_convolution(cases, "1d f32 1x80x1500 to 384", {{1, 80, 1500}, {384, 80, 3}, {1}, {1}});
  add_convolution(cases, "1d f32 1x512x400 depthwise 31", {{1, 512, 400}, {512, 1, 31}, {1}, {15}, 512});
  add_convolution(cases, "3d f32 1x16x8x56x56 3x3x3", {{1, 16, 8, 56, 56}, {32, 16, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}});
  add_convolution(cases, "transposed 2d f32 1x128x28x28 4x4 stride 2",
                  {{1, 128, 28, 28}, {128, 64, 4, 4}, {2, 2}, {1, 1}, 1, true});
  add_convolution(cases, "transposed 1d f32 1x256x200 16 stride 8", {{1, 256, 200}, {256, 128, 16}, {8}, {4}, 1, true});

  cases.family("convolution gradients");
  add_backward(cases, "2d f32 1x64x28x28 3x3", {{1, 64, 28, 28}, {64, 64, 3, 3}, {1, 1}, {1, 1}}, {1, 64, 28, 28});
  add_backward(cases, "2d f32 4x32x56x56 3x3 stride 2", {{4, 32, 56, 56}, {64, 32, 3, 3}, {2, 2}, {1, 1}},
               {4, 64, 28, 28});
  add_backward(cases, "depthwise f32 1x96x28x28 3x3", {{1, 96, 28, 28}, {96, 1, 3, 3}, {1, 1}, {1, 1}, 96},
               {1, 96, 28, 28});
  add_backward(cases, "1d f32 2x64x500 3", {{2, 64, 500}, {64, 64, 3}, {1}, {1}}, {2, 64, 500});

  cases.family("recurrent layers");
  for (const bool reverse : {false, true})
    cases.add(std::string("LSTM f32 T=50 N=8 256 to 256") + (reverse ? " reverse" : ""), [=] {
      return call<4>(aoti_torch_cpu_mkldnn_rnn_layer, randn({50, 8, 256}), weight({1024, 256}), weight({1024, 256}),
                     weight({1024}), weight({1024}), randn({1, 8, 256}), randn({1, 8, 256}), reverse, Ints{}, 2, 256, 1,
                     true, false, false, false);
    });
  cases.add("LSTM f32 T=20 N=1 128 to 128", [=] {
    return call<4>(aoti_torch_cpu_mkldnn_rnn_layer, randn({20, 1, 128}), weight({512, 128}), weight({512, 128}),
                   weight({512}), weight({512}), randn({1, 1, 128}), randn({1, 1, 128}), false, Ints{}, 2, 128, 1, true,
                   false, false, false);
  });
}

}  // namespace bench
