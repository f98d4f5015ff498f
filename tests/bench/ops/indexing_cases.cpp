// Indexing, gathering and scattering, embedding.
#include "tests/bench/ops/calls.h"

namespace bench {

void add_indexing_cases(Cases& cases) {
  cases.family("indexing");
  cases.add("index f32 rows 4096 of 32000x256", [] {
    return call<1>(aoti_torch_cpu_index_Tensor, randn({32000, 256}), OptList({integers({4096}, 0, 32000)}));
  });
  cases.add("index f32 two indices 65536 of 512x512", [] {
    return call<1>(aoti_torch_cpu_index_Tensor, randn({512, 512}),
                   OptList({integers({65536}, 0, 512), integers({65536}, 0, 512)}));
  });
  cases.add("index f32 columns 64 of 4096x256", [] {
    return call<1>(aoti_torch_cpu_index_Tensor, randn({4096, 256}), OptList({T(), integers({64}, 0, 256)}));
  });
  cases.add("index i64 bool mask of 262144", [] {
    return call<1>(aoti_torch_cpu_index_Tensor, integers({262144}, 0, 1000),
                   OptList({integers({262144}, 0, 2, kBool)}));
  });
  cases.add("index bf16 rows 2048 of 32000x512", [] {
    return call<1>(aoti_torch_cpu_index_Tensor, randn({32000, 512}, kBF16), OptList({integers({2048}, 0, 32000)}));
  });
  cases.add("index_put f32 rows 1024 of 4096x256", [] {
    return call<1>(aoti_torch_cpu_index_put, randn({4096, 256}), OptList({shuffled(4096).strided({1024}, {1})}),
                   randn({1024, 256}), false);
  });
  cases.add("index_put f32 accumulate rows 4096 of 1024x128", [] {
    return call<1>(aoti_torch_cpu_index_put, randn({1024, 128}), OptList({integers({4096}, 0, 1024)}),
                   randn({4096, 128}), true);
  });
  cases.add("index_put f32 accumulate 65536 scalars", [] {
    return call<1>(aoti_torch_cpu_index_put, randn({65536}), OptList({integers({65536}, 0, 65536)}), randn({65536}),
                   true);
  });
  cases.add("nonzero f32 half of 512x512", [] {
    return call<1>(aoti_torch_cpu_nonzero, integers({512, 512}, 0, 2, kF32));
  });
  cases.add("nonzero bool few of 1048576",
            [] { return call<1>(aoti_torch_cpu_nonzero, integers({1048576}, -60, 2, kI8)); });
  cases.add("nonzero_static i64 of 65536",
            [] { return call<1>(aoti_torch_cpu_nonzero_static, integers({65536}, 0, 2), 65536, -1); });
  cases.add("masked_select f32 half of 512x512", [] {
    return call<1>(aoti_torch_cpu_masked_select, randn({512, 512}), integers({512, 512}, 0, 2, kBool));
  });
  cases.add("masked_scatter f32 half of 512x512", [] {
    return call<1>(aoti_torch_cpu_masked_scatter, randn({512, 512}), integers({512, 512}, 0, 2, kBool),
                   randn({512, 512}));
  });
  cases.add("gather f32 512x512 dim 1", [] {
    return named<1>("aten::gather", "", randn({512, 512}), 1, integers({512, 512}, 0, 512), false);
  });
  cases.add("index_select f32 4096 of 32000x256", [] {
    return named<1>("aten::index_select", "", randn({32000, 256}), 0, integers({4096}, 0, 32000));
  });
  cases.add("cat f32 4 of 256x256 dim 1", [] {
    return call<1>(aoti_torch_cpu_cat,
                   List({randn({256, 256}), randn({256, 256}), randn({256, 256}), randn({256, 256})}), 1);
  });
  cases.add("repeat_interleave 4096 counts of 0 to 15",
            [] { return call<1>(aoti_torch_cpu_repeat_interleave_Tensor, integers({4096}, 0, 16), none); });

  cases.family("scattering");
  cases.add("scatter f32 512x512 dim 1", [] {
    const T out = empty({512, 512});
    return writing(out, call<0>(aoti_torch_cpu_scatter_src_out, out, randn({512, 512}), 1,
                                integers({512, 512}, 0, 1, kI64), randn({512, 512})));
  });
  cases.add("scatter value f32 512x512 dim 0", [] {
    const T out = empty({512, 512});
    return writing(
        out, call<0>(aoti_torch_cpu_scatter_value_out, out, randn({512, 512}), 0, integers({512, 512}, 0, 512), 1.5));
  });
  for (const char* reduce : {"sum", "mean", "amax", "prod"})
    cases.add(std::string("scatter_reduce f32 ") + reduce + " 20000x64 into 1000x64", [=] {
      const T out = empty({1000, 64});
      const T index = integers({20000}, 0, 1000).strided({20000, 64}, {1, 0});
      return writing(out, call<0>(aoti_torch_cpu_scatter_reduce_two_out, out, randn({1000, 64}), 0, index,
                                  randn({20000, 64}), reduce, true));
    });
  cases.add("scatter_reduce f32 sum 65536 into 1024", [] {
    const T out = empty({1024});
    return writing(out, call<0>(aoti_torch_cpu_scatter_reduce_two_out, out, randn({1024}), 0,
                                integers({65536}, 0, 1024), randn({65536}), "sum", true));
  });
  cases.add("scatter_add f32 256x1024 dim 1", [] {
    return named<1>("aten::scatter_add", "", randn({256, 1024}), 1, integers({256, 1024}, 0, 1024), randn({256, 1024}));
  });
  cases.add("index_reduce f32 amax 4096x64 into 512x64", [] {
    return call<1>(aoti_torch_cpu_index_reduce, randn({512, 64}), 0, integers({4096}, 0, 512), randn({4096, 64}),
                   "amax", true);
  });
  cases.add("segment_reduce f32 sum 65536x16 of 1024", [] {
    return call<1>(aoti_torch_cpu_segment_reduce, randn({65536, 16}), "sum", Opt(integers({1024}, 64, 65)), none, none,
                   0, true, none);
  });

  cases.family("embedding");
  cases.add("_embedding_bag f32 mean 512 bags of 20, 100000x64", [] {
    Sizes offsets;
    for (int64_t i = 0; i < 512; ++i) offsets.push_back(20 * i);
    return call<4>(aoti_torch_cpu__embedding_bag_forward_only, randn({100000, 64}), integers({10240}, 0, 100000),
                   numbers(offsets), false, 1, false, none, false, -1);
  });
  cases.add("_embedding_bag f32 sum, weighted", [] {
    Sizes offsets;
    for (int64_t i = 0; i < 512; ++i) offsets.push_back(20 * i);
    return call<4>(aoti_torch_cpu__embedding_bag, randn({100000, 64}), integers({10240}, 0, 100000), numbers(offsets),
                   false, 0, false, Opt(randn({10240})), false, -1);
  });
  cases.add("_embedding_bag f32 max", [] {
    Sizes offsets;
    for (int64_t i = 0; i < 512; ++i) offsets.push_back(20 * i);
    return call<4>(aoti_torch_cpu__embedding_bag, randn({100000, 64}), integers({10240}, 0, 100000), numbers(offsets),
                   false, 2, false, none, false, -1);
  });
  cases.add("embedding f32 4096 of 32000x256", [] {
    return named<1>("aten::embedding", "", randn({32000, 256}), integers({4096}, 0, 32000), -1, false, false);
  });
  cases.add("_embedding_bag_dense_backward f32 sum", [] {
    Sizes offset2bag, sizes(512, 20);
    for (int64_t i = 0; i < 10240; ++i) offset2bag.push_back(i / 20);
    return call<1>(aoti_torch_cpu__embedding_bag_dense_backward, randn({512, 64}), integers({10240}, 0, 10000),
                   numbers(offset2bag), numbers(sizes), numbers({}), 10000, false, 0, none, -1);
  });
}

}  // namespace bench
