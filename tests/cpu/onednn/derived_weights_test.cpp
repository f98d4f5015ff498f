// Operators keep packed forms of constant weights. For new weights, these forms are made before the first run.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "src/cpu/convolution/convolution.h"
#include "src/cpu/layers/wrapped_linear.h"
#include "src/cpu/matmul/products.h"
#include "src/cpu/onednn/onednn.h"
#include "src/operators/cpu_ops.h"

using namespace sconce;

namespace {

using Ints = std::vector<int64_t>;

Tensor filled(const Ints& sizes, float step, bool constant) {
  Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_as<float>()[i] = step * static_cast<float>(i % 17 - 8);
  t.storage()->set_immutable(constant);
  return t;
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.numel() == b.numel() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

// Runs with old weights, packs the new weights as the old ones were packed, and runs with those.
template <class Run>
void check(const Tensor& before, const Tensor& after, const Tensor& plain, const Run& run) {
  const uint64_t start = Storage::derivations();
  run(before);
  REQUIRE(Storage::derivations() > start);  // otherwise there is nothing to pack
  after.storage()->derive_as(*before.storage());
  const uint64_t prepared = Storage::derivations();
  const Tensor got = run(after);
  CHECK(Storage::derivations() == prepared);
  CHECK(equal(got, run(plain)));
}

}  // namespace

TEST_CASE("derived weights: of a matrix product") {
  const Tensor x = filled({40, 48}, 0.5f, false);
  check(filled({48, 64}, 1, true), filled({48, 64}, 3, true), filled({48, 64}, 3, true),
        [&](const Tensor& w) { return cpu::mm(x, w); });
}

TEST_CASE("derived weights: of a convolution, by the library and without it") {
  const Ints sizes{2, 16, 24, 24}, strides{16 * 24 * 24, 1, 16 * 24, 16}, one{1, 1}, zero{0, 0};
  Tensor x = Tensor::empty_strided(sizes, strides, DType::kFloat32);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_as<float>()[i] = static_cast<float>(i % 13 - 6);
  for (const int64_t groups : {1, 16})
    for (const auto use : {onednn::Use::kNever, onednn::Use::kAlways}) {
      CAPTURE(groups);
      const auto weight = [&](float step, bool constant) { return filled({32, 16 / groups, 3, 3}, step, constant); };
      onednn::testing_use(use);
      check(weight(1, true), weight(3, true), weight(3, true),
            [&](const Tensor& w) { return cpu::convolution(x, w, nullptr, one, zero, one, false, zero, groups); });
      onednn::testing_use(onednn::Use::kByPolicy);
    }
}

TEST_CASE("derived weights: of a linear layer with float16 weights") {
  const Tensor x = filled({3, 32}, 0.5f, false);
  const auto packed = [](float step) {
    Tensor w = cpu::wrapped_fbgemm_pack_gemm_matrix_fp16(filled({16, 32}, step, false));
    w.storage()->set_immutable(true);
    return w;
  };
  check(packed(1), packed(3), packed(3),
        [&](const Tensor& w) { return cpu::wrapped_fbgemm_linear_fp16_weight(x, w, nullptr, 16); });
}
