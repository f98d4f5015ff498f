// Copies, fills, elementwise operators and reductions that packages call.
#include "tests/bench/ops/calls.h"

namespace bench {
namespace {

void add_copy(Cases& cases, const std::string& name, const std::function<std::pair<T, T>()>& make) {
  cases.add("copy_ " + name, [=] {
    const auto [to, from] = make();
    return writing(to, call<0>(aoti_torch_copy_, to, from, 0));
  });
}

}  // namespace

void add_copy_cases(Cases& cases) {
  cases.family("copies, fills");
  const auto pair = [](T to, T from) { return std::pair(std::move(to), std::move(from)); };
  add_copy(cases, "f32 512x512", [=] { return pair(empty({512, 512}), randn({512, 512})); });
  add_copy(cases, "f32 4096x1024", [=] { return pair(empty({4096, 1024}), randn({4096, 1024})); });
  add_copy(cases, "f32 transposed 512x512", [=] { return pair(empty({512, 512}), randn({512, 512}).transposed()); });
  add_copy(cases, "f32 of [B,T,H,D] 8x128x12x64", [=] {
    return pair(empty({8, 12, 128, 64}), randn({8, 128, 12, 64}).permuted({0, 2, 1, 3}));
  });
  add_copy(cases, "f32 to channels last 4x64x56x56", [=] {
    return pair(empty({4, 56, 56, 64}).permuted({0, 3, 1, 2}), randn({4, 64, 56, 56}));
  });
  add_copy(cases, "f32 from channels last 4x64x56x56", [=] {
    return pair(empty({4, 64, 56, 56}), randn({4, 56, 56, 64}).permuted({0, 3, 1, 2}));
  });
  add_copy(cases, "f32 to bf16 512x512", [=] { return pair(empty({512, 512}, kBF16), randn({512, 512})); });
  add_copy(cases, "bf16 to f32 512x512", [=] { return pair(empty({512, 512}), randn({512, 512}, kBF16)); });
  add_copy(cases, "f32 to f16 512x512", [=] { return pair(empty({512, 512}, kF16), randn({512, 512})); });
  add_copy(cases, "i64 to f32 512x512", [=] { return pair(empty({512, 512}), integers({512, 512}, 0, 100)); });
  add_copy(cases, "f32 to i64 512x512", [=] { return pair(empty({512, 512}, kI64), randn({512, 512})); });
  add_copy(cases, "f32 to bf16 transposed 512x512", [=] {
    return pair(empty({512, 512}, kBF16), randn({512, 512}).transposed());
  });
  add_copy(cases, "bf16 transposed 512x512", [=] {
    return pair(empty({512, 512}, kBF16), randn({512, 512}, kBF16).transposed());
  });
  add_copy(cases, "f32 expanded 512 to 512x512", [=] {
    return pair(empty({512, 512}), randn({512}).strided({512, 512}, {0, 1}));
  });
  cases.add("fill_ f32 512x512", [] {
    const T t = empty({512, 512});
    return writing(t, call<0>(aoti_torch_cpu_fill__Scalar, t, 1.5));
  });
  cases.add("fill_ f32 every second of 512x1024", [] {
    const T t = empty({512, 1024}).strided({512, 512}, {1024, 2});
    return writing(t, call<0>(aoti_torch_cpu_fill__Scalar, t, 1.5));
  });

  cases.family("elementwise, reductions");
  cases.add("add f32 512x512", [] {
    return call<1>(aoti_torch_cpu_add_Tensor, randn({512, 512}), randn({512, 512}), 1.0);
  });
  cases.add("add f32 broadcast 512x512", [] {
    return call<1>(aoti_torch_cpu_add_Tensor, randn({512, 512}), randn({512}), 1.0);
  });
  cases.add("mul bf16 512x512", [] {
    return call<1>(aoti_torch_cpu_mul_Tensor, randn({512, 512}, kBF16), randn({512, 512}, kBF16));
  });
  cases.add("mul c64 512x512", [] {
    return call<1>(aoti_torch_cpu_mul_Tensor, randn({512, 512}, kC64), randn({512, 512}, kC64));
  });
  cases.add("pow f32 tensor 256x256", [] {
    return call<1>(aoti_torch_cpu_pow_Tensor_Tensor, uniform({256, 256}, 0.1, 2), randn({256, 256}));
  });
  cases.add("pow f32 scalar 2.5, 256x256", [] {
    return call<1>(aoti_torch_cpu_pow_Tensor_Scalar, uniform({256, 256}, 0.1, 2), 2.5);
  });
  cases.add("abs c64 512x512", [] { return call<1>(aoti_torch_cpu_abs, randn({512, 512}, kC64)); });
  cases.add("angle c64 256x256", [] { return call<1>(aoti_torch_cpu_angle, randn({256, 256}, kC64)); });
  cases.add("polar f32 256x256", [] { return call<1>(aoti_torch_cpu_polar, randn({256, 256}), randn({256, 256})); });
  cases.add("gcd i64 65536",
            [] { return call<1>(aoti_torch_cpu_gcd, integers({65536}, 0, 100000), integers({65536}, 1, 1000)); });
  cases.add("exp f32 512x512", [] { return named<1>("aten::exp", "", randn({512, 512})); });
  cases.add("sigmoid f32 512x512", [] { return named<1>("aten::sigmoid", "", randn({512, 512})); });
  cases.add("tanh f32 512x512", [] { return named<1>("aten::tanh", "", randn({512, 512})); });
  cases.add("sum f32 512x512 dim 1", [] {
    return named<1>("aten::sum", "dim_IntList", randn({512, 512}), Ints{1}, false, none);
  });
  cases.add("amax f32 512x512 dim 1", [] { return named<1>("aten::amax", "", randn({512, 512}), Ints{1}, false); });
  cases.add("where f32 512x512", [] {
    return named<1>("aten::where", "self", integers({512, 512}, 0, 2, kBool), randn({512, 512}), randn({512, 512}));
  });
  cases.add("flip f32 512x512", [] { return named<1>("aten::flip", "", randn({512, 512}), Ints{1}); });
  cases.add("_trilinear f32 bilinear 128x64x64", [] {
    return call<1>(aoti_torch_cpu__trilinear, randn({128, 64}), randn({64, 64, 64}), randn({128, 64}), Ints{1, 3},
                   Ints{0}, Ints{1, 2}, Ints{2, 3}, 1);
  });
}

}  // namespace bench
