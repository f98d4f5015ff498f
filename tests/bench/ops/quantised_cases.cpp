// Weights of 8 and 4 bits, layers packed by oneDNN, observers.
#include "tests/bench/ops/calls.h"

namespace bench {

void add_quantised_cases(Cases& cases) {
  cases.family("packed and quantised weights");
  for (const int64_t m : {1, 64})
    cases.add("_weight_int8pack_mm bf16 " + std::to_string(m) + "x1024x1024", [=] {
      return call<1>(aoti_torch_cpu__weight_int8pack_mm, randn({m, 1024}, kBF16),
                     constant(integers({1024, 1024}, -128, 128, kI8)), uniform({1024}, 0.01, 0.02, kBF16));
    });
  for (const int64_t m : {1, 64})
    cases.add("_linear_pointwise f32, plain weight, gelu " + std::to_string(m) + "x512x2048", [=] {
      return call<1>(aoti_torch_cpu__linear_pointwise, randn({m, 512}), constant(randn({2048, 512})),
                     Opt(randn({2048})), "gelu", none, 0, Some<const char*>("none"));
    });
  const std::string sizes[] = {"128 3072 768 float32", "1 3072 768 float32", "128 3072 768 bfloat16"};
  for (const std::string& size : sizes)
    cases.add("_linear_pointwise packed, gelu " + size, [=] {
      const bool small = size.ends_with("bfloat16");
      return call<1>(aoti_torch_cpu__linear_pointwise, randn({size[1] == ' ' ? 1 : 128, 768}, small ? kBF16 : kF32),
                     packed("linear " + size), Opt(randn({3072}, small ? kBF16 : kF32)), "gelu", none, 0,
                     Some<const char*>("none"));
    });
  for (const std::string& size :
       {std::string("64 64 float32"), std::string("96 1 float32"), std::string("64 64 bfloat16")})
    cases.add("_convolution_pointwise packed, relu " + size, [=] {
      const bool small = size.ends_with("bfloat16");
      const int64_t channels = size[0] == '9' ? 96 : 64;
      return call<1>(aoti_torch_cpu_mkldnn__convolution_pointwise,
                     randn({1, channels, 56, 56}, small ? kBF16 : kF32).channels_last(), packed("convolution " + size),
                     none, Ints{1, 1}, Ints{1, 1}, Ints{1, 1}, channels == 96 ? 96 : 1, "relu", none, 0, none);
    });
  for (const int64_t m : {1, 128})
    cases.add("_qlinear_pointwise u8 to f32 " + std::to_string(m) + "x768x768", [=] {
      return call<1>(aoti_torch_cpu__qlinear_pointwise_tensor, integers({m, 768}, 0, 256, kU8), uniform({}, 0.01, 0.02),
                     integers({}, 10, 11, kI32), packed("qlinear " + std::to_string(m)), uniform({768}, 0.01, 0.02),
                     integers({768}, 0, 1), Opt(randn({768})), 1.0, 0, Some<int32_t>(kF32), "none", none, 0, "");
    });
  cases.add("_qconv_pointwise u8 to u8 1x64x28x28 3x3 relu", [] {
    return call<1>(aoti_torch_cpu__qconv_pointwise_tensor, integers({1, 64, 28, 28}, 0, 256, kU8).channels_last(),
                   uniform({}, 0.02, 0.0201), integers({}, 10, 11, kI32), packed("qconv"), uniform({64}, 0.01, 0.0101),
                   integers({64}, 0, 1), Opt(randn({64})), Ints{1, 1}, Ints{1, 1}, Ints{1, 1}, 1, 0.5, 3,
                   Some<int32_t>(kU8), "relu", none, 0, none);
  });
  for (const int64_t m : {1, 64})
    cases.add("_weight_int4pack_mm bf16 " + std::to_string(m) + "x1024x1024", [=] {
      return call<1>(aoti_torch_cpu__weight_int4pack_mm_cpu_tensor, randn({m, 1024}, kBF16), packed("int4"),
                     integers({}, 64, 65), uniform({16, 1024, 2}, 0.01, 0.02, kBF16));
    });
  cases.add("_fused_moving_avg_obs_fq_helper f32 64x1024", [] {
    return call<6>(aoti_torch_cpu__fused_moving_avg_obs_fq_helper_functional, randn({64, 1024}), numbers({1}),
                   numbers({1}), uniform({1}, -1, 0), uniform({1}, 0, 1), uniform({1}, 1, 1.1), numbers({0}, kI32),
                   0.01, 0, 255, 0, false, false);
  });
}

}  // namespace bench
