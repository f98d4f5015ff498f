#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sconce/error.h"
#include "src/cpu/attention/attention_softmax.h"
#include "src/device/cpu_isa.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"
#include "tests/cpu/matrix_cases.h"

using namespace sconce;
using namespace sconce::matrix_testing;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [batch, heads, length, depth] over memory of [batch, length, heads, depth].
template <class T>
Tensor random_heads(int64_t batch, int64_t heads, int64_t length, int64_t depth, Random& random) {
  const Tensor memory = Tensor::empty(Ints{batch * length * heads * depth + 1}, kDType<T>);
  fill<T>(memory, random);
  return memory.as_strided(Ints{batch, heads, length, depth}, Ints{length * heads * depth, depth, heads * depth, 1}, 0);
}

template <class T>
double element(const Tensor& t, int64_t b, int64_t h, int64_t i, int64_t d) {
  return static_cast<double>(t.data_as<T>()[b * t.stride(0) + h * t.stride(1) + i * t.stride(2) + d * t.stride(3)]);
}

// Against softmax(q @ k' * scale + mask) @ v in double.
template <class T>
void check_attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal, const Tensor* mask,
                     double tolerance) {
  using C = ComputeType<T>;
  const auto [out, logsumexp] =
      cpu::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, causal, mask, std::nullopt);
  const int64_t heads = q.size(1), keys = k.size(2), depth = q.size(3), group = heads / k.size(1);
  const double scale = 1 / std::sqrt(static_cast<double>(depth));
  double worst = 0;
  std::vector<double> weights(static_cast<size_t>(keys));
  for (int64_t b = 0; b < q.size(0); ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < q.size(2); ++i) {
        double most = -kInfinity, sum = 0;
        for (int64_t n = 0; n < keys; ++n) {
          double score = 0;
          for (int64_t d = 0; d < depth; ++d) score += element<T>(q, b, h, i, d) * element<T>(k, b, h / group, n, d);
          score *= scale;
          if (mask) score += element<C>(*mask, b, h, i, n);
          if (causal && n > i) score = -kInfinity;
          weights[static_cast<size_t>(n)] = score;
          most = std::max(most, score);
        }
        if (most == -kInfinity) most = 0;
        for (double& w : weights) sum += w = std::exp(w - most);
        for (int64_t d = 0; d < depth; ++d) {
          double value = 0;
          for (int64_t n = 0; n < keys; ++n)
            value += weights[static_cast<size_t>(n)] * element<T>(v, b, h / group, n, d);
          if (sum != 0) value /= sum;
          worst = std::max(worst, std::abs(value - element<T>(out, b, h, i, d)));
        }
        const double wanted = sum == 0 ? 0 : most + std::log(sum);
        const C got =
            logsumexp.data_as<C>()[b * logsumexp.stride(0) + h * logsumexp.stride(1) + i * logsumexp.stride(2)];
        CHECK(static_cast<double>(got) == doctest::Approx(wanted).epsilon(1e-5));
      }
  INFO(describe(q), " ", describe(k), " causal ", causal, " mask ", mask != nullptr);
  CHECK(worst <= tolerance);
}

}  // namespace

TEST_CASE("_scaled_dot_product_flash_attention_for_cpu: as PyTorch computes it") {
  testing::run_kernel("attention.cases", "_scaled_dot_product_flash_attention_for_cpu",
                      cpu::_scaled_dot_product_flash_attention_for_cpu);
}

TEST_CASE("_scaled_dot_product_flash_attention_for_cpu: lengths around every block, one and three threads") {
  Random random(1);
  const int before = kernel_threads();
  for (const int threads : {1, 3}) {
    set_kernel_threads(threads);
    const auto run = [&]<class T>(double tolerance) {
      for (const auto& [queries, keys, depth] : {std::array<int64_t, 3>{1, 900, 64},
                                                 {5, 31, 24},
                                                 {56, 56, 8},
                                                 {65, 65, 16},
                                                 {57, 770, 10},
                                                 {130, 260, 40},
                                                 {3, 1100, 151}})
        for (const bool causal : {false, true})
          for (const int64_t groups : {2, 4}) {
            const int64_t batch = queries < 56 ? 2 : 1;
            const Tensor q = random_heads<T>(batch, 4, queries, depth, random);
            const Tensor k = random_heads<T>(batch, groups, keys, depth, random);
            const Tensor v = random_heads<T>(batch, groups, keys, depth, random);
            check_attention<T>(q, k, v, causal, nullptr, tolerance);
            if (groups == 2 || !causal) continue;
            const Tensor mask = random_heads<ComputeType<T>>(batch, 4, queries, keys, random);
            check_attention<T>(q, k, v, causal, &mask, tolerance);
          }
    };
    run.template operator()<float>(5e-6);
    run.template operator()<BFloat16>(4e-3);
    if (threads > 1) continue;
    run.template operator()<double>(1e-13);
    run.template operator()<Half>(5e-4);
  }
  set_kernel_threads(before);
}

TEST_CASE("_scaled_dot_product_flash_attention_for_cpu: long heads, whose keys are prepared block by block") {
  Random random(2);
  const Tensor q = random_heads<float>(1, 1, 120, 128, random);
  const Tensor k = random_heads<float>(1, 1, 2500, 128, random), v = random_heads<float>(1, 1, 2500, 128, random);
  check_attention<float>(q, k, v, false, nullptr, 5e-6);
  check_attention<float>(q, k, v, true, nullptr, 5e-6);
}

TEST_CASE("_scaled_dot_product_flash_attention_for_cpu: depth that is not innermost") {
  Random random(5);
  const auto run = [&]<class T>(double tolerance) {
    const Tensor memory = Tensor::empty(Ints{4000}, kDType<T>);
    fill<T>(memory, random);
    const Tensor q = memory.as_strided(Ints{2, 3, 10, 9}, Ints{300, 100, 1, 10}, 0);
    const Tensor k = memory.as_strided(Ints{2, 3, 12, 9}, Ints{27, 1, 54, 3}, 700);
    const Tensor v = memory.as_strided(Ints{2, 3, 12, 9}, Ints{400, 130, 2, 14}, 900);
    check_attention<T>(q, k, v, false, nullptr, tolerance);
    check_attention<T>(q, k, v, true, nullptr, tolerance);
    const Tensor one = memory.as_strided(Ints{2, 3, 1, 9}, Ints{300, 100, 1, 10}, 0);
    check_attention<T>(one, k, v, false, nullptr, tolerance);
  };
  run.template operator()<float>(5e-6);
  run.template operator()<double>(1e-13);
  run.template operator()<Half>(5e-4);
  run.template operator()<BFloat16>(4e-3);
}

TEST_CASE("_scaled_dot_product_flash_attention_for_cpu: a mask of bool leaves out what is false") {
  Random random(3);
  const Tensor q = random_heads<float>(1, 2, 5, 8, random), k = random_heads<float>(1, 2, 20, 8, random);
  const Tensor choice = Tensor::empty(Ints{5, 20}, DType::kBool),
               mask = Tensor::empty(Ints{1, 2, 5, 20}, DType::kFloat32);
  for (int64_t i = 0; i < 100; ++i) {
    choice.data_as<bool>()[i] = i / 20 != 2 && random() % 2;  // the mask hides every key from row 2
    for (int64_t h = 0; h < 2; ++h)
      mask.data_as<float>()[h * 100 + i] = choice.data_as<bool>()[i] ? 0 : -std::numeric_limits<float>::infinity();
  }
  const auto with = [&](const Tensor& m) {
    return cpu::_scaled_dot_product_flash_attention_for_cpu(q, k, k, 0, false, &m, std::nullopt)[0];
  };
  const Tensor a = with(choice), b = with(mask);
  CHECK(std::memcmp(a.data(), b.data(), a.bytes()) == 0);
  for (int64_t d = 0; d < 8; ++d) CHECK(element<float>(a, 0, 1, 2, d) == 0);
}

TEST_CASE("_scaled_dot_product_flash_attention_for_cpu: nothing to see, nothing to do, what does not fit") {
  const auto make = [](Ints sizes, DType dtype = DType::kFloat32) {
    const Tensor t = Tensor::empty(sizes, dtype);
    if (t.numel()) std::memset(t.data(), 0, t.bytes());
    return t;
  };
  const auto call = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor* mask = nullptr) {
    return cpu::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, false, mask, std::nullopt);
  };
  const auto [out, logsumexp] = call(make({1, 2, 3, 4}), make({1, 2, 0, 4}), make({1, 2, 0, 4}));
  for (int64_t i = 0; i < 24; ++i) CHECK(out.data_as<float>()[i] == 0);
  for (int64_t i = 0; i < 6; ++i) CHECK(logsumexp.data_as<float>()[i] == 0);
  CHECK(call(make({1, 2, 0, 4}), make({1, 2, 3, 4}), make({1, 2, 3, 4}))[0].numel() == 0);
  CHECK(call(make({1, 0, 2, 4}), make({1, 0, 3, 4}), make({1, 0, 3, 4}))[1].numel() == 0);
  CHECK(call(make({1, 2, 2, 0}), make({1, 2, 3, 0}), make({1, 2, 3, 0}))[0].numel() == 0);
  const Tensor q = make({2, 4, 3, 8}), k = make({2, 4, 5, 8});
  // ATen accepts these and reads out of bounds.
  CHECK_THROWS_AS(call(q, k, make({2, 4, 4, 8})), Error);
  CHECK_THROWS_AS(call(q, make({1, 4, 5, 8}), make({1, 4, 5, 8})), Error);
  CHECK_THROWS_AS(call(q, make({2, 3, 5, 8}), make({2, 3, 5, 8})), Error);
  CHECK_THROWS_AS(call(q, make({2, 0, 5, 8}), make({2, 0, 5, 8})), Error);
  CHECK_THROWS_AS(call(q, k, make({2, 2, 5, 8})), Error);
  const Tensor mask = make({2, 5, 3, 5}), bytes = make({3, 5}, DType::kInt8);
  CHECK_THROWS_AS(call(q, k, k, &mask), Error);
  CHECK_THROWS_AS(call(q, k, k, &bytes), Error);
}

TEST_CASE("softmax block: both instruction sets") {
  const auto check = []<class T>(const SoftmaxKernels<T>& kernels, double tolerance) {
    Random random(4);
    for (int64_t n = 0; n < 40; ++n) {
      // The softmax of one row, taken in two blocks, against that of the whole row. Scores range from 0 down to values
      // whose exponential underflows.
      std::vector<T> scores(static_cast<size_t>(2 * n + 1)), mask(scores.size());
      for (size_t i = 0; i < scores.size(); ++i) {
        scores[i] = static_cast<T>(60 * random.real());
        mask[i] = random() % 5 ? static_cast<T>(60 * random.real()) : -std::numeric_limits<T>::infinity();
      }
      std::vector<double> wanted(scores.size());
      double most = -kInfinity, sum = 0;
      for (int64_t i = 0; i < 2 * n; ++i) {
        const auto u = static_cast<size_t>(i);
        wanted[u] = static_cast<double>(static_cast<T>(scores[u] + mask[u]));
        most = std::max(most, wanted[u]);
      }
      for (int64_t i = 0; i < 2 * n; ++i)
        sum += wanted[static_cast<size_t>(i)] =
            most == -kInfinity ? 0 : std::exp(wanted[static_cast<size_t>(i)] - most);
      T maximum = -std::numeric_limits<T>::infinity(), total = 0, correction = 0, first = 1;
      for (int64_t half = 0; half < 2; ++half) {
        T* const at = scores.data() + half * n;
        kernels.block({at, n, 1, n, n, n, mask.data() + half * n, 0, &maximum, &total, &correction});
        if (half == 1) first = correction;
      }
      for (int64_t i = 0; i < 2 * n; ++i) {
        const double got =
            static_cast<double>(scores[static_cast<size_t>(i)]) * (i < n ? static_cast<double>(first) : 1.0);
        CHECK(std::abs(got - wanted[static_cast<size_t>(i)]) <= tolerance * (1 + wanted[static_cast<size_t>(i)]));
      }
      CHECK(static_cast<double>(total) == doctest::Approx(sum).epsilon(tolerance));
      CHECK((most == -kInfinity ? !std::isfinite(maximum) : static_cast<double>(maximum) == most));
    }
    T nan[3] = {std::numeric_limits<T>::quiet_NaN(), -std::numeric_limits<T>::infinity(), 0};
    T maximum = -std::numeric_limits<T>::infinity(), total = 0, correction = 0;
    kernels.block({nan, 3, 1, 2, 3, 2, nullptr, 0, &maximum, &total, &correction});
    CHECK(std::isnan(total));
    CHECK(std::isnan(nan[0]));
    CHECK(nan[1] == 0);
  };
  check(kSoftmaxF32Avx2, 1e-6);
  check(kSoftmaxF64Avx2, 1e-14);
  if (!has_avx512()) return;
  check(kSoftmaxF32Avx512, 1e-6);
  check(kSoftmaxF64Avx512, 1e-14);
}
