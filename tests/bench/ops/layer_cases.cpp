// Softmax, norms, losses, reductions and resizing that are called by name.
#include "tests/bench/ops/calls.h"

namespace bench {
namespace {

void add_softmax(Cases& cases) {
  cases.family("softmax by name");
  for (const char* name : {"aten::_softmax", "aten::_log_softmax"}) {
    const std::string shown = std::string(name).substr(6);
    cases.add(shown + " f32 128x1000", [=] { return named<1>(name, "", randn({128, 1000}), -1, false); });
    cases.add(shown + " bf16 12x128x128", [=] { return named<1>(name, "", randn({12, 128, 128}, kBF16), -1, false); });
    cases.add(shown + " f32 1x21x64x64 dim 1", [=] { return named<1>(name, "", randn({1, 21, 64, 64}), 1, false); });
    cases.add(shown + " f64 128x256", [=] { return named<1>(name, "", randn({128, 256}, kF64), -1, false); });
    cases.add(shown + " f32 4096x10", [=] { return named<1>(name, "", randn({4096, 10}), -1, false); });
  }
  cases.add("_softmax_backward_data f32 12x128x128", [] {
    return named<1>("aten::_softmax_backward_data", "", randn({12, 128, 128}), uniform({12, 128, 128}, 0, 1), -1, kF32);
  });
  cases.add("_log_softmax_backward_data f32 12x128x128", [] {
    return named<1>("aten::_log_softmax_backward_data", "", randn({12, 128, 128}), uniform({12, 128, 128}, -5, 0), -1,
                    kF32);
  });
  cases.add("_log_softmax_backward_data f32 1x21x64x64 dim 1", [] {
    return named<1>("aten::_log_softmax_backward_data", "", randn({1, 21, 64, 64}), uniform({1, 21, 64, 64}, -5, 0), 1,
                    kF32);
  });
  cases.add("_safe_softmax f32 12x128x128", [] {
    return named<1>("aten::_safe_softmax", "", randn({12, 128, 128}), -1, none);
  });
  cases.add("_masked_softmax f32 1x12x128x128", [] {
    return named<1>("aten::_masked_softmax", "", randn({1, 12, 128, 128}), integers({1, 12, 128, 128}, 0, 2, kBool), -1,
                    2);
  });
  cases.add("logsumexp f32 512x512 dim 1", [] {
    return named<1>("aten::logsumexp", "", randn({512, 512}), Ints{1}, false);
  });
}

void add_norms(Cases& cases) {
  cases.family("norms by name");
  cases.add("native_layer_norm bf16 197x768", [] {
    return named<3>("aten::native_layer_norm", "", randn({197, 768}, kBF16), Ints{768}, Opt(randn({768}, kBF16)),
                    Opt(randn({768}, kBF16)), 1e-5);
  });
  cases.add("native_layer_norm f32 4096x64", [] {
    return named<3>("aten::native_layer_norm", "", randn({4096, 64}), Ints{64}, Opt(randn({64})), Opt(randn({64})),
                    1e-5);
  });
  cases.add("native_layer_norm_backward f32 197x768", [] {
    return named<3>("aten::native_layer_norm_backward", "", randn({197, 768}), randn({197, 768}), Ints{768},
                    randn({197, 1}), uniform({197, 1}, 0.5, 2), Opt(randn({768})), Opt(randn({768})), Ints{1, 1, 1});
  });
  cases.add("native_group_norm_backward f32 1x128x32x32 of 32", [] {
    return named<3>("aten::native_group_norm_backward", "", randn({1, 128, 32, 32}), randn({1, 128, 32, 32}),
                    randn({1, 32}), uniform({1, 32}, 0.5, 2), Opt(randn({128})), 1, 128, 1024, 32, Ints{1, 1, 1});
  });
  cases.add("_native_batch_norm_legit_no_training f32 1x64x56x56", [] {
    return named<3>("aten::_native_batch_norm_legit_no_training", "", randn({1, 64, 56, 56}), Opt(randn({64})),
                    Opt(randn({64})), randn({64}), uniform({64}, 0.5, 2), 0.1, 1e-5);
  });
  cases.add("native_batch_norm f32 4x64x28x28 training", [] {
    return named<3>("aten::native_batch_norm", "", randn({4, 64, 28, 28}), Opt(randn({64})), Opt(randn({64})),
                    Opt(randn({64})), Opt(uniform({64}, 0.5, 2)), true, 0.1, 1e-5);
  });
  cases.add("native_batch_norm_backward f32 4x64x28x28", [] {
    return named<3>("aten::native_batch_norm_backward", "", randn({4, 64, 28, 28}), randn({4, 64, 28, 28}),
                    Opt(randn({64})), Opt(randn({64})), Opt(uniform({64}, 0.5, 2)), Opt(randn({64})),
                    Opt(uniform({64}, 0.5, 2)), true, 1e-5, Ints{1, 1, 1});
  });
  cases.add("linalg_vector_norm f32 256x768 dim 1", [] {
    return named<1>("aten::linalg_vector_norm", "", randn({256, 768}), 2.0, Ints{1}, true, none);
  });
  cases.add("linalg_vector_norm f32 256x768 dim 0", [] {
    return named<1>("aten::linalg_vector_norm", "", randn({256, 768}), 2.0, Ints{0}, true, none);
  });
  cases.add("linalg_vector_norm f32 256x768 order 1", [] {
    return named<1>("aten::linalg_vector_norm", "", randn({256, 768}), 1.0, Ints{1}, false, none);
  });
  cases.add("linalg_vector_norm f32 256x768 order inf, all", [] {
    return named<1>("aten::linalg_vector_norm", "", randn({256, 768}), __builtin_inf(), none, false, none);
  });
  cases.add("linalg_vector_norm f32 256x768 order 3", [] {
    return named<1>("aten::linalg_vector_norm", "", randn({256, 768}), 3.0, Ints{1}, false, none);
  });
  cases.add("renorm f32 256x768", [] { return named<1>("aten::renorm", "", randn({256, 768}), 2.0, 0, 1.0); });
  cases.add("dist f32 256x768", [] { return named<1>("aten::dist", "", randn({256, 768}), randn({256, 768}), 2.0); });
}

void add_losses(Cases& cases) {
  cases.family("losses");
  for (const int reduction : {0, 1}) {
    const std::string tail = reduction ? " f32 256x768 mean" : " f32 256x768";
    for (const char* name : {"aten::mse_loss", "aten::soft_margin_loss"})
      cases.add(std::string(name).substr(6) + tail, [=] {
        return named<1>(name, "", randn({256, 768}), randn({256, 768}), reduction);
      });
    for (const char* name : {"aten::smooth_l1_loss", "aten::huber_loss"})
      cases.add(std::string(name).substr(6) + tail, [=] {
        return named<1>(name, "", randn({256, 768}), randn({256, 768}), reduction, 1.0);
      });
    cases.add("binary_cross_entropy" + tail, [=] {
      return named<1>("aten::binary_cross_entropy", "", uniform({256, 768}, 0.01, 0.99), uniform({256, 768}, 0, 1),
                      none, reduction);
    });
    cases.add("binary_cross_entropy_with_logits" + tail, [=] {
      return named<1>("aten::binary_cross_entropy_with_logits", "", randn({256, 768}), uniform({256, 768}, 0, 1), none,
                      none, reduction);
    });
  }
  for (const char* name : {"aten::mse_loss_backward"})
    cases.add(std::string(name).substr(6) + " f32 256x768", [=] {
      return named<1>(name, "", randn({256, 768}), randn({256, 768}), randn({256, 768}), 0);
    });
  for (const char* name : {"aten::smooth_l1_loss_backward", "aten::huber_loss_backward"})
    cases.add(std::string(name).substr(6) + " f32 256x768", [=] {
      return named<1>(name, "", randn({256, 768}), randn({256, 768}), randn({256, 768}), 0, 1.0);
    });
  cases.add("nll_loss_forward f32 512x1000", [] {
    return named<2>("aten::nll_loss_forward", "", randn({512, 1000}), integers({512}, 0, 1000), none, 1, -100);
  });
  cases.add("nll_loss_backward f32 512x1000", [] {
    return named<1>("aten::nll_loss_backward", "", randn({}), randn({512, 1000}), integers({512}, 0, 1000), none, 1,
                    -100, uniform({}, 512, 512));
  });
  cases.add("nll_loss2d_forward f32 1x21x64x64", [] {
    return named<2>("aten::nll_loss2d_forward", "", randn({1, 21, 64, 64}), integers({1, 64, 64}, 0, 21), none, 1,
                    -100);
  });
  cases.add("multi_margin_loss f32 512x100", [] {
    return named<1>("aten::multi_margin_loss", "", randn({512, 100}), integers({512}, 0, 100), 1.0, 1.0, none, 1);
  });
  cases.add("multilabel_margin_loss_forward f32 128x100", [] {
    return named<2>("aten::multilabel_margin_loss_forward", "", randn({128, 100}), integers({128, 100}, -1, 100), 1);
  });
}

void add_reductions(Cases& cases) {
  cases.family("reductions by name");
  const auto plain = [] { return randn({512, 512}); };
  cases.add("sum f32 512x512 dim 0",
            [=] { return named<1>("aten::sum", "dim_IntList", plain(), Ints{0}, false, none); });
  cases.add("sum bf16 512x512 dim 1", [=] {
    return named<1>("aten::sum", "dim_IntList", randn({512, 512}, kBF16), Ints{1}, false, none);
  });
  cases.add("sum i64 512x512", [=] { return named<1>("aten::sum", "", integers({512, 512}, 0, 100), none); });
  cases.add("mean f32 1x512x14x14 dims 2 3", [] {
    return named<1>("aten::mean", "dim", randn({1, 512, 14, 14}), Ints{2, 3}, false, none);
  });
  cases.add("mean f32 512x512", [=] { return named<1>("aten::mean", "", plain(), none); });
  cases.add("var f32 512x512 dim 1", [=] { return named<1>("aten::var", "correction", plain(), Ints{1}, 1, false); });
  cases.add("var_mean f32 512x512 dim 1",
            [=] { return named<2>("aten::var_mean", "correction", plain(), Ints{1}, 1, true); });
  cases.add("std f32 512x512 dim 0", [=] { return named<1>("aten::std", "correction", plain(), Ints{0}, 1, false); });
  for (const char* name : {"aten::amax", "aten::amin"}) {
    const std::string shown = std::string(name).substr(6);
    cases.add(shown + " f32 512x512 dim 0", [=] { return named<1>(name, "", plain(), Ints{0}, false); });
    cases.add(shown + " bf16 512x512 dim 1", [=] {
      return named<1>(name, "", randn({512, 512}, kBF16), Ints{1}, false);
    });
    cases.add(shown + " i64 512x512 dim 1", [=] {
      return named<1>(name, "", integers({512, 512}, 0, 1000), Ints{1}, false);
    });
  }
  cases.add("max f32 512x512 dim 1", [=] { return named<2>("aten::max", "dim", plain(), 1, false); });
  cases.add("max f32 512x512 dim 0", [=] { return named<2>("aten::max", "dim", plain(), 0, false); });
  cases.add("max f32 512x512", [=] { return named<1>("aten::max", "", plain()); });
  cases.add("argmax f32 512x512 dim 1", [=] { return named<1>("aten::argmax", "", plain(), 1, false); });
  cases.add("argmax f32 1x32000", [] { return named<1>("aten::argmax", "", randn({1, 32000}), -1, false); });
  cases.add("aminmax f32 512x512", [=] { return named<2>("aten::aminmax", "", plain(), none, false); });
  cases.add("any bool 512x512 dim 1", [] {
    return named<1>("aten::any", "dim", integers({512, 512}, 0, 1, kBool), 1, false);
  });
  cases.add("all bool 512x512", [] { return named<1>("aten::all", "", integers({512, 512}, 1, 2, kBool)); });
  cases.add("all f32 512x512 dim 1", [=] { return named<1>("aten::all", "dim", plain(), 1, false); });
  cases.add("count_nonzero i64 512x512", [] {
    return named<1>("aten::count_nonzero", "", integers({512, 512}, 0, 2), none);
  });
  cases.add("nansum f32 512x512 dim 1", [=] { return named<1>("aten::nansum", "", plain(), Ints{1}, false, none); });
  cases.add("prod f32 512x512 dim 1", [] {
    return named<1>("aten::prod", "dim_int", uniform({512, 512}, 0.99, 1.01), 1, false, none);
  });
  cases.add("dot f32 65536", [] { return named<1>("aten::dot", "", randn({65536}), randn({65536})); });
  cases.add("mv f32 1024x1024", [] { return named<1>("aten::mv", "", randn({1024, 1024}), randn({1024})); });
  cases.add("linalg_cross f32 65536x3", [] {
    return named<1>("aten::linalg_cross", "", randn({65536, 3}), randn({65536, 3}), -1);
  });
  cases.add("trace f32 512x512", [=] { return named<1>("aten::trace", "", plain()); });
}

void add_resizing(Cases& cases) {
  cases.family("resizing by name");
  const auto image = [] { return randn({1, 64, 28, 28}); };
  cases.add("upsample_nearest2d f32 1x64x28x28 to 56x56", [=] {
    return named<1>("aten::upsample_nearest2d", "", image(), Ints{56, 56}, none, none);
  });
  cases.add("upsample_bilinear2d f32 1x64x28x28 to 56x56", [=] {
    return named<1>("aten::upsample_bilinear2d", "", image(), Ints{56, 56}, false, none, none);
  });
  cases.add("upsample_bilinear2d f32 1x3x224x224 to 384x384", [=] {
    return named<1>("aten::upsample_bilinear2d", "", randn({1, 3, 224, 224}), Ints{384, 384}, false, none, none);
  });
  cases.add("upsample_bicubic2d f32 1x64x28x28 to 56x56", [=] {
    return named<1>("aten::upsample_bicubic2d", "", image(), Ints{56, 56}, false, none, none);
  });
  cases.add("upsample_nearest1d f32 1x256x128 to 256", [] {
    return named<1>("aten::upsample_nearest1d", "", randn({1, 256, 128}), Ints{256}, none);
  });
  cases.add("upsample_bilinear2d_backward f32 1x64x56x56 of 28x28", [] {
    return named<1>("aten::upsample_bilinear2d_backward", "", randn({1, 64, 56, 56}), Ints{56, 56}, Ints{1, 64, 28, 28},
                    false, none, none);
  });
  cases.add("grid_sampler_2d f32 1x16x64x64", [] {
    return named<1>("aten::grid_sampler_2d", "", randn({1, 16, 64, 64}), uniform({1, 64, 64, 2}, -1, 1), 0, 0, false);
  });
  cases.add("reflection_pad2d_backward f32 1x64x28x28", [=] {
    return named<1>("aten::reflection_pad2d_backward", "", randn({1, 64, 32, 32}), image(), Ints{2, 2, 2, 2});
  });
}

}  // namespace

void add_layer_cases(Cases& cases) {
  add_softmax(cases);
  add_norms(cases);
  add_losses(cases);
  add_reductions(cases);
  add_resizing(cases);
}

}  // namespace bench
