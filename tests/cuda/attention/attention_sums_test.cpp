// Attention without logsumexp, with keys in one part and in several. The kernel must not write where logsumexp would
// be.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/cuda/device_calls.h"
#include "tests/cuda/reference.h"

namespace sconce::gpu {
namespace {

using detail::check_result;
using detail::function_named;
using detail::handle_of;
using detail::taken;

std::array<Tensor, 2> efficient(const Tensor& q, const Tensor& k, const Tensor& v, bool sums) {
  using Function =
      AOTITorchError (*)(AtenTensorHandle, AtenTensorHandle, AtenTensorHandle, AtenTensorHandle*, int32_t, double,
                         int32_t, double*, AtenTensorHandle*, AtenTensorHandle*, AtenTensorHandle*, AtenTensorHandle*);
  static const auto function =
      reinterpret_cast<Function>(function_named("aoti_torch_cuda__scaled_dot_product_efficient_attention"));
  AtenTensorHandle results[4] = {};
  check_result(function(handle_of(q), handle_of(k), handle_of(v), nullptr, sums, 0, 0, nullptr, &results[0],
                        &results[1], &results[2], &results[3]));
  taken(results[3]);
  taken(results[2]);
  Tensor out = taken(results[0]);
  return {std::move(out), taken(results[1])};
}

Tensor of_cudnn_row(const Tensor& q, const Tensor& k, const Tensor& v) {
  using Function = AOTITorchError (*)(AtenTensorHandle, AtenTensorHandle, AtenTensorHandle, AtenTensorHandle*, int32_t,
                                      double, int32_t, int32_t, double*, AtenTensorHandle*, AtenTensorHandle*,
                                      AtenTensorHandle*, AtenTensorHandle*, int64_t*, int64_t*, AtenTensorHandle*,
                                      AtenTensorHandle*, AtenTensorHandle*);
  static const auto function =
      reinterpret_cast<Function>(function_named("aoti_torch_cuda__scaled_dot_product_cudnn_attention"));
  AtenTensorHandle results[7] = {};
  int64_t most[2] = {};
  check_result(function(handle_of(q), handle_of(k), handle_of(v), nullptr, 0, 0, 0, 0, nullptr, &results[0],
                        &results[1], &results[2], &results[3], &most[0], &most[1], &results[4], &results[5],
                        &results[6]));
  for (size_t i = 1; i < 7; ++i) taken(results[i]);
  return taken(results[0]);
}

// Queries, keys and values as views [batch, heads, tokens, d] of one tensor [batch, tokens, 3, heads, d]; only the
// first `queries` tokens are queries.
struct Packed {
  int64_t batch, tokens, heads, d, queries;
  Numbers numbers;
  Tensor q, k, v;

  Packed(int64_t b, int64_t t, int64_t h, int64_t size, int64_t asked, DType dtype)
      : batch(b), tokens(t), heads(h), d(size), queries(asked), numbers(random_numbers(b * t * 3 * h * size, 5)) {
    const Tensor all = on_device(numbers, {b, t, 3, h, size}, dtype);
    numbers = rounded(numbers, dtype);
    const auto part = [&](int64_t number, int64_t count) {
      const int64_t sizes[] = {b, h, count, size}, strides[] = {t * 3 * h * size, size, 3 * h * size, 1};
      return all.as_strided(sizes, strides, number * h * size);
    };
    q = part(0, asked);
    k = part(1, t);
    v = part(2, t);
  }

  double at(int64_t b, int64_t t, int64_t number, int64_t h, int64_t i) const {
    return numbers[static_cast<size_t>((((b * tokens + t) * 3 + number) * heads + h) * d + i)].real();
  }
  Numbers expected() const {
    Numbers out;
    std::vector<double> scores(static_cast<size_t>(tokens));
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < queries; ++t) {
          double most = -1e300, sum = 0;
          for (int64_t s = 0; s < tokens; ++s) {
            double score = 0;
            for (int64_t i = 0; i < d; ++i) score += at(b, t, 0, h, i) * at(b, s, 1, h, i);
            most = std::max(most, scores[static_cast<size_t>(s)] = score / std::sqrt(static_cast<double>(d)));
          }
          for (double& score : scores) sum += score = std::exp(score - most);
          for (int64_t i = 0; i < d; ++i) {
            double value = 0;
            for (int64_t s = 0; s < tokens; ++s) value += scores[static_cast<size_t>(s)] * at(b, s, 2, h, i);
            out.emplace_back(value / sum);
          }
        }
    return out;
  }
};

}  // namespace

TEST_CASE("attention without logarithms of sums: float32, keys in parts, views of one tensor") {
  for (const int64_t batch : {1, 2, 3}) {  // keys are split into six parts, three parts, one part
    const Packed x(batch, 730, 3, 48, 730, DType::kFloat32);
    const Numbers expected = x.expected();
    for (const bool sums : {false, true}) {
      const auto [out, logsumexp] = efficient(x.q, x.k, x.v, sums);
      CHECK(difference(out, {batch, 3, 730, 48}, expected, 1e-5) == "");
      CHECK(logsumexp.size(2) == (sums ? 736 : 0));
      CHECK((logsumexp.data() == nullptr) == !sums);
    }
    CHECK(difference(of_cudnn_row(x.q, x.k, x.v), {batch, 3, 730, 48}, expected, 1e-5) == "");
  }
}

TEST_CASE("attention without logarithms of sums: few queries of half types, one part and several") {
  for (const int64_t tokens : {40, 300, 2000})
    for (const int64_t queries : {1, 5, 16}) {
      const Packed x(2, tokens, 3, 64, queries, DType::kFloat16);
      const Numbers expected = x.expected();
      CHECK(difference(efficient(x.q, x.k, x.v, false)[0], {2, 3, queries, 64}, expected, 2e-3) == "");
      CHECK(difference(of_cudnn_row(x.q, x.k, x.v), {2, 3, queries, 64}, expected, 2e-3) == "");
    }
}

TEST_CASE("a tensor without elements has no address") {
  const int64_t none = 0;
  CHECK(Tensor::empty(IntSpan(&none, 1), DType::kFloat32, kGpu).data() == nullptr);
}

}  // namespace sconce::gpu
