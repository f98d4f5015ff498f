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
  cases.add("_fused_moving_avg_obs_fq_helper f32 64x1024", [] {
    return call<6>(aoti_torch_cpu__fused_moving_avg_obs_fq_helper_functional, randn({64, 1024}), numbers({1}),
                   numbers({1}), uniform({1}, -1, 0), uniform({1}, 0, 1), uniform({1}, 1, 1.1), numbers({0}, kI32),
                   0.01, 0, 255, 0, false, false);
  });
}

}  // namespace bench
