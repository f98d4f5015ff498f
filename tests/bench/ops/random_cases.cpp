// Random numbers. Streams equal PyTorch's; results differ only if one program has drawn more before.
#include "tests/bench/ops/calls.h"

namespace bench {

void add_random_cases(Cases& cases) {
  cases.family("random");
  const auto maker = [&](const std::string& name, auto* function, auto... before) {
    cases.add(name, [=] { return call<1>(function, before..., Ints{512, 512}, none, none, Absent{}, none); });
  };
  maker("rand f32 512x512", aoti_torch_cpu_rand);
  maker("randn f32 512x512", aoti_torch_cpu_randn);
  maker("randint i64 512x512", aoti_torch_cpu_randint, 1000);
  maker("randint_low i64 512x512", aoti_torch_cpu_randint_low, -5, 1000);
  cases.add("randn f32 64x15 (odd)",
            [] { return call<1>(aoti_torch_cpu_randn, Ints{15}, none, none, Absent{}, none); });
  cases.add("rand bf16 512x512", [] {
    return call<1>(aoti_torch_cpu_rand, Ints{512, 512}, Some<int32_t>(kBF16), none, Absent{}, none);
  });
  cases.add("randn bf16 512x512", [] {
    return call<1>(aoti_torch_cpu_randn, Ints{512, 512}, Some<int32_t>(kBF16), none, Absent{}, none);
  });
  cases.add("randn f64 256x256", [] {
    return call<1>(aoti_torch_cpu_randn, Ints{256, 256}, Some<int32_t>(kF64), none, Absent{}, none);
  });
  cases.add("randperm 65536", [] { return call<1>(aoti_torch_cpu_randperm, 65536, none, none, Absent{}, none); });
  cases.add("bernoulli_ f32 0.1 512x512", [] {
    const T t = empty({512, 512});
    return writing(t, call<0>(aoti_torch_cpu_bernoulli__float, t, 0.1, none));
  });
  cases.add("bernoulli_ f32 tensor 512x512", [] {
    const T t = empty({512, 512});
    return writing(t, call<0>(aoti_torch_cpu_bernoulli__Tensor, t, uniform({512, 512}, 0, 1), none));
  });
  cases.add("native_dropout f32 0.1 512x512", [] {
    return call<2>(aoti_torch_cpu_native_dropout, randn({512, 512}), 0.1, Some<int32_t>(1));
  });
  cases.add("uniform f32 512x512", [] { return call<1>(aoti_torch_cpu_uniform, randn({512, 512}), -1.0, 1.0, none); });
  cases.add("normal f32 512x512", [] {
    return call<1>(aoti_torch_cpu_normal_functional, randn({512, 512}), 0.0, 2.0, none);
  });
  cases.add("exponential f32 8x32000", [] {
    return call<1>(aoti_torch_cpu_exponential, randn({8, 32000}), 1.0, none);
  });
  cases.add("multinomial f32 8x32000, 1", [] {
    return named<1>("aten::multinomial", "", uniform({8, 32000}, 0, 1), 1, false, none);
  });
  cases.add("poisson f32 65536", [] { return named<1>("aten::poisson", "", uniform({65536}, 0, 8), none); });
}

}  // namespace bench
