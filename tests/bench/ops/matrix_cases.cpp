// Matrix products, with the shapes of attention blocks, of classifiers, and of decoding one token.
#include "tests/bench/ops/calls.h"

namespace bench {
namespace {

const char* name_of(DType dtype) {
  return dtype == kF32 ? "f32" : dtype == kBF16 ? "bf16" : dtype == kF16 ? "f16" : "f64";
}

void add_mm(Cases& cases, DType dtype, int64_t m, int64_t k, int64_t n, bool weight = false) {
  cases.add(std::string("mm ") + name_of(dtype) + " " + std::to_string(m) + "x" + std::to_string(k) + "x" +
                std::to_string(n) + (weight ? " W^T" : ""),
            [=] {
              const T a = randn({m, k}, dtype),
                      b = weight ? constant(randn({n, k}, dtype)).transposed() : randn({k, n}, dtype);
              const T out = empty({m, n}, dtype);
              return writing(out, call<0>(aoti_torch_cpu_mm_out, out, a, b));
            });
}
void add_addmm(Cases& cases, DType dtype, int64_t m, int64_t k, int64_t n) {
  cases.add(
      std::string("addmm ") + name_of(dtype) + " " + std::to_string(m) + "x" + std::to_string(k) + "x" +
          std::to_string(n) + " bias, W^T",
      [=] {
        const T bias = randn({n}, dtype), a = randn({m, k}, dtype), b = constant(randn({n, k}, dtype)).transposed();
        const T out = empty({m, n}, dtype);
        return writing(out, call<0>(aoti_torch_cpu_addmm_out, out, bias, a, b, 1.0, 1.0));
      });
}
void add_bmm(Cases& cases, DType dtype, int64_t batch, int64_t m, int64_t k, int64_t n, bool transposed = false) {
  cases.add(std::string("bmm ") + name_of(dtype) + " " + std::to_string(batch) + "x" + std::to_string(m) + "x" +
                std::to_string(k) + "x" + std::to_string(n) + (transposed ? " B^T" : ""),
            [=] {
              const T a = randn({batch, m, k}, dtype);
              const T b = transposed ? randn({batch, n, k}, dtype).transposed() : randn({batch, k, n}, dtype);
              const T out = empty({batch, m, n}, dtype);
              return writing(out, call<0>(aoti_torch_cpu_bmm_out, out, a, b));
            });
}

}  // namespace

void add_matrix_cases(Cases& cases) {
  cases.family("matrix products f32");
  add_mm(cases, kF32, 128, 768, 768);
  add_mm(cases, kF32, 512, 512, 512);
  add_mm(cases, kF32, 1, 1024, 4096, true);
  add_mm(cases, kF32, 8, 768, 3072, true);
  add_mm(cases, kF32, 1024, 64, 1024);
  add_mm(cases, kF32, 2048, 256, 16);
  add_mm(cases, kF64, 256, 256, 256);
  add_addmm(cases, kF32, 128, 768, 3072);
  add_addmm(cases, kF32, 32, 256, 256);
  add_addmm(cases, kF32, 197, 384, 1152);
  add_bmm(cases, kF32, 12, 128, 64, 128, true);
  add_bmm(cases, kF32, 12, 128, 128, 64);
  add_bmm(cases, kF32, 64, 16, 32, 16);
  add_bmm(cases, kF32, 8, 1, 128, 512);
  cases.add("baddbmm f32 12x128x64x128", [] {
    const T out = empty({12, 128, 128});
    return writing(out, call<0>(aoti_torch_cpu_baddbmm_out, out, randn({12, 128, 128}), randn({12, 128, 64}),
                                randn({12, 64, 128}), 1.0, 0.125));
  });
  cases.add("addbmm f32 16x64x64x64", [] {
    return call<1>(aoti_torch_cpu_addbmm, randn({64, 64}), randn({16, 64, 64}), randn({16, 64, 64}), 1.0, 1.0);
  });
  cases.add("addmv f32 2048x2048", [] {
    return call<1>(aoti_torch_cpu_addmv, randn({2048}), randn({2048, 2048}), randn({2048}), 1.0, 1.0);
  });
  cases.add("addmm_activation f32 128x256x1024 gelu", [] {
    return call<1>(aoti_torch_cpu__addmm_activation, randn({1024}), randn({128, 256}), randn({256, 1024}), 1.0, 1.0,
                   true);
  });

  for (const DType dtype : {kBF16, kF16}) {
    cases.family(dtype == kBF16 ? "matrix products bf16" : "matrix products f16");
    add_mm(cases, dtype, 128, 768, 768);
    add_mm(cases, dtype, 1, 1024, 4096, true);
    add_mm(cases, dtype, 8, 768, 3072, true);
    add_addmm(cases, dtype, 128, 768, 3072);
    add_bmm(cases, dtype, 12, 128, 64, 128, true);
    add_bmm(cases, dtype, 12, 128, 128, 64);
  }
  cases.family("matrix products f8, whole numbers");
  cases.add("_scaled_mm f8 128x768x768 to bf16", [] {
    const T out = empty({128, 768}, kBF16);
    return writing(
        out, call<0>(aoti_torch_cpu__scaled_mm_out, out, randn({128, 768}, kF8), randn({768, 768}, kF8).transposed(),
                     uniform({}, 1, 2), uniform({}, 1, 2), none, none, Some<int32_t>(kBF16), false));
  });
  cases.add("_int_mm i8 128x768x768", [] {
    const T out = empty({128, 768}, kI32);
    return writing(out, call<0>(aoti_torch_cpu__int_mm_out, out, integers({128, 768}, -128, 128, kI8),
                                integers({768, 768}, -128, 128, kI8)));
  });
  cases.family("matrix products f8, whole numbers");
  cases.add("mm i64 128x128x128", [] {
    const T out = empty({128, 128}, kI64);
    return writing(out, call<0>(aoti_torch_cpu_mm_out, out, integers({128, 128}, -9, 9), integers({128, 128}, -9, 9)));
  });
  cases.add("_grouped_mm bf16 8 groups 256x512x512", [] {
    return call<1>(aoti_torch_cpu__grouped_mm, randn({256, 512}, kBF16), randn({8, 512, 512}, kBF16).transposed(),
                   Opt(numbers({32, 64, 96, 128, 160, 192, 224, 256}, kI32)), none, none);
  });
}

}  // namespace bench
