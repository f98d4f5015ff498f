// Flash attention, its gradients, and norms.
#include "tests/bench/ops/calls.h"

namespace bench {
namespace {

struct Heads {
  int64_t batch, heads, queries, keys, size;
  bool causal = false, mask = false, swapped = false;
  DType dtype = kF32;
};

// [B, H, T, D] or, if swapped, a view of [B, T, H, D] in memory, as projections produce it.
T heads(int64_t b, int64_t h, int64_t t, int64_t d, const Heads& s) {
  return s.swapped ? randn({b, t, h, d}, s.dtype).permuted({0, 2, 1, 3}) : randn({b, h, t, d}, s.dtype);
}

void add_attention(Cases& cases, const std::string& name, const Heads& s) {
  cases.add("attention " + name, [=]() -> Call {
    const T q = heads(s.batch, s.heads, s.queries, s.size, s), k = heads(s.batch, s.heads, s.keys, s.size, s),
            v = heads(s.batch, s.heads, s.keys, s.size, s);
    if (s.mask)
      return call<2>(aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu, q, k, v, 0.0, s.causal,
                     Opt(randn({s.batch, 1, s.queries, s.keys}, s.dtype)), none);
    return call<2>(aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu, q, k, v, 0.0, s.causal, none, none);
  });
}

}  // namespace

void add_attention_cases(Cases& cases) {
  cases.family("attention");
  add_attention(cases, "f32 1x12x128x64", {1, 12, 128, 128, 64});
  add_attention(cases, "f32 1x12x512x64", {1, 12, 512, 512, 64});
  add_attention(cases, "f32 1x12x512x64 causal", {1, 12, 512, 512, 64, true});
  add_attention(cases, "f32 1x12x197x64 of [B,T,H,D]", {1, 12, 197, 197, 64, false, false, true});
  add_attention(cases, "f32 2x8x256x64 mask", {2, 8, 256, 256, 64, false, true});
  add_attention(cases, "f32 1x8x256x128 causal", {1, 8, 256, 256, 128, true});
  add_attention(cases, "f32 1x8x1024x40", {1, 8, 1024, 1024, 40});
  add_attention(cases, "f32 1x32x1x128 of 1024 keys", {1, 32, 1, 1024, 128});
  add_attention(cases, "f32 16x4x32x16", {16, 4, 32, 32, 16});
  add_attention(cases, "bf16 1x12x512x64", {1, 12, 512, 512, 64, false, false, false, kBF16});
  add_attention(cases, "bf16 1x12x512x64 causal", {1, 12, 512, 512, 64, true, false, false, kBF16});
  add_attention(cases, "f16 1x12x512x64 mask", {1, 12, 512, 512, 64, false, true, false, kF16});
  add_attention(cases, "bf16 1x32x1x128 of 1024 keys", {1, 32, 1, 1024, 128, false, false, false, kBF16});
  for (const bool causal : {false, true})
    cases.add(std::string("attention gradients f32 1x8x256x64") + (causal ? " causal" : ""), [=] {
      const T q = randn({1, 8, 256, 64}), k = randn({1, 8, 256, 64}), v = randn({1, 8, 256, 64});
      AtenTensorHandle out[2];
      check(aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu(q.get(), k.get(), v.get(), 0.0, causal, none,
                                                                       none, &out[0], &out[1]));
      return call<3>(aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu_backward, randn({1, 8, 256, 64}), q, k,
                     v, T(out[0]), T(out[1]), 0.0, causal, none, none);
    });

  cases.family("norms, softmax");
  cases.add("_fused_rms_norm f32 128x1024", [] {
    return call<2>(aoti_torch_cpu__fused_rms_norm, randn({128, 1024}), Ints{1024}, Opt(randn({1024})),
                   Some<double>(1e-5));
  });
  cases.add("_fused_rms_norm bf16 128x1024", [] {
    return call<2>(aoti_torch_cpu__fused_rms_norm, randn({128, 1024}, kBF16), Ints{1024}, Opt(randn({1024}, kBF16)),
                   Some<double>(1e-5));
  });
  cases.add("native_layer_norm f32 197x768", [] {
    return named<3>("aten::native_layer_norm", "", randn({197, 768}), Ints{768}, Opt(randn({768})), Opt(randn({768})),
                    1e-5);
  });
  cases.add("native_group_norm f32 1x128x32x32 of 32", [] {
    return named<3>("aten::native_group_norm", "", randn({1, 128, 32, 32}), Opt(randn({128})), Opt(randn({128})), 1,
                    128, 1024, 32, 1e-5);
  });
  cases.add("_softmax f32 12x128x128", [] { return named<1>("aten::_softmax", "", randn({12, 128, 128}), -1, false); });
  cases.add("_log_softmax f32 32x32000", [] {
    return named<1>("aten::_log_softmax", "", randn({32, 32000}), -1, false);
  });
}

}  // namespace bench
