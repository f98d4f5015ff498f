// Scans, sorting, order statistics, searching, histograms, distances.
#include "tests/bench/ops/calls.h"

namespace bench {

void add_sorting_cases(Cases& cases) {
  cases.family("scans");
  for (const int dim : {0, 1}) {
    const std::string at = " 512x512 dim " + std::to_string(dim);
    cases.add("cumsum f32" + at, [=] { return call<1>(aoti_torch_cpu_cumsum, randn({512, 512}), dim, none); });
    cases.add("cumprod f32" + at, [=] {
      return call<1>(aoti_torch_cpu_cumprod, uniform({512, 512}, 0.9, 1.1), dim, none);
    });
    cases.add("logcumsumexp f32" + at, [=] { return call<1>(aoti_torch_cpu_logcumsumexp, randn({512, 512}), dim); });
    cases.add("cummax f32" + at, [=] { return call<2>(aoti_torch_cpu_cummax, randn({512, 512}), dim); });
  }
  cases.add("cumsum i64 bool 8x4096", [] {
    return call<1>(aoti_torch_cpu_cumsum, integers({8, 4096}, 0, 2, kBool), 1, Some<int32_t>(kI64));
  });
  cases.add("cumsum bf16 64x1024", [] { return call<1>(aoti_torch_cpu_cumsum, randn({64, 1024}, kBF16), 1, none); });

  cases.family("sorting");
  cases.add("sort f32 64x1024", [] { return call<2>(aoti_torch_cpu_sort, randn({64, 1024}), 1, false); });
  cases.add("sort f32 1048576", [] { return call<2>(aoti_torch_cpu_sort, randn({1048576}), 0, false); });
  cases.add("sort_stable f32 descending 8x32000", [] {
    return call<2>(aoti_torch_cpu_sort_stable, randn({8, 32000}), Some<int32_t>(1), 1, true);
  });
  cases.add("sort i64 4096 of 64", [] { return call<2>(aoti_torch_cpu_sort, integers({4096}, 0, 64), 0, false); });
  cases.add("sort i64 65536", [] { return call<2>(aoti_torch_cpu_sort, integers({65536}, 0, 1 << 30), 0, false); });
  cases.add("sort f32 1024x64 dim 0", [] { return call<2>(aoti_torch_cpu_sort, randn({1024, 64}), 0, false); });
  cases.add("sort bf16 64x1024", [] { return call<2>(aoti_torch_cpu_sort, randn({64, 1024}, kBF16), 1, false); });
  cases.add("sort f32 4096x16", [] { return call<2>(aoti_torch_cpu_sort, randn({4096, 16}), 1, false); });
  cases.add("topk f32 50 of 8x32000", [] {
    return call<2>(aoti_torch_cpu_topk, randn({8, 32000}), 50, 1, true, true);
  });
  cases.add("topk f32 8 of 512x128", [] { return call<2>(aoti_torch_cpu_topk, randn({512, 128}), 8, 1, true, true); });
  cases.add("topk f32 1 of 64x32000", [] {
    return call<2>(aoti_torch_cpu_topk, randn({64, 32000}), 1, 1, true, true);
  });
  cases.add("topk f32 1000 of 100000",
            [] { return call<2>(aoti_torch_cpu_topk, randn({100000}), 1000, 0, true, true); });
  cases.add("topk bf16 4 of 1024x64", [] {
    return call<2>(aoti_torch_cpu_topk, randn({1024, 64}, kBF16), 4, 1, true, true);
  });

  cases.family("order statistics");
  cases.add("kthvalue f32 100 of 64x1024", [] {
    return call<2>(aoti_torch_cpu_kthvalue, randn({64, 1024}), 100, 1, false);
  });
  cases.add("median f32 262144", [] { return call<1>(aoti_torch_cpu_median, randn({262144})); });
  cases.add("nanmedian f32 262144", [] { return call<1>(aoti_torch_cpu_nanmedian, randn({262144})); });
  cases.add("median.dim f32 256x256", [] { return named<2>("aten::median", "dim", randn({256, 256}), 1, false); });
  cases.add("mode i64 256x256 of 32", [] {
    return call<2>(aoti_torch_cpu_mode, integers({256, 256}, 0, 32), 1, false);
  });
  cases.add("mode f32 256x256", [] { return call<2>(aoti_torch_cpu_mode, randn({256, 256}), 1, false); });

  cases.family("searching, histograms");
  cases.add("searchsorted f32 65536 in 1024", [] {
    return call<1>(aoti_torch_cpu_searchsorted_Tensor, sorted({1024}), uniform({65536}, 0, 1), false, false, none,
                   none);
  });
  cases.add("searchsorted f32 rows 64x256 in 64x1024", [] {
    return call<1>(aoti_torch_cpu_searchsorted_Tensor, sorted({64, 1024}), uniform({64, 256}, 0, 1), true, true, none,
                   none);
  });
  cases.add("bucketize f32 262144 in 32", [] {
    return call<1>(aoti_torch_cpu_bucketize_Tensor, uniform({262144}, 0, 1), sorted({32}), false, false);
  });
  cases.add("histc f32 262144 of 100", [] { return call<1>(aoti_torch_cpu_histc, randn({262144}), 100, -4.0, 4.0); });
  cases.add("histogram f32 262144 of 64",
            [] { return call<2>(aoti_torch_cpu_histogram_bin_ct, randn({262144}), 64, Absent{}, none, false); });
  cases.add("_unique2 i64 65536 of 1000",
            [] { return named<3>("aten::_unique2", "", integers({65536}, 0, 1000), true, true, true); });
  cases.add("_unique2 f32 65536", [] { return named<3>("aten::_unique2", "", randn({65536}), true, true, false); });
  cases.add("unique_consecutive i64 262144",
            [] { return named<3>("aten::unique_consecutive", "", integers({262144}, 0, 3), true, true, none); });
  cases.add("unique_dim i64 4096x4", [] {
    return named<3>("aten::unique_dim", "", integers({4096, 4}, 0, 6), 0, true, true, false);
  });
  cases.add("bincount i64 262144 of 1000",
            [] { return named<1>("aten::bincount", "", integers({262144}, 0, 1000), none, 0); });

  cases.family("distances");
  cases.add("cdist f32 512x512 of 64, p 2", [] {
    return call<1>(aoti_torch_cpu__cdist_forward, randn({512, 64}), randn({512, 64}), 2.0, none);
  });
  cases.add("cdist f32 512x512 of 64, p 1", [] {
    return call<1>(aoti_torch_cpu__cdist_forward, randn({512, 64}), randn({512, 64}), 1.0, none);
  });
  cases.add("cdist f32 20x20 of 3, batch 64, p 2", [] {
    return call<1>(aoti_torch_cpu__cdist_forward, randn({64, 20, 3}), randn({64, 20, 3}), 2.0, none);
  });
  cases.add("pdist f32 256 of 64, p 2", [] { return call<1>(aoti_torch_cpu__pdist_forward, randn({256, 64}), 2.0); });
  cases.add("cdist_backward f32 256x256 of 32, p 2", [] {
    const T a = randn({256, 32}), b = randn({256, 32});
    AtenTensorHandle distance;
    check(aoti_torch_cpu__cdist_forward(a.get(), b.get(), 2.0, none, &distance));
    return call<1>(aoti_torch_cpu__cdist_backward, randn({256, 256}), a, b, 2.0, T(distance));
  });
}

}  // namespace bench
