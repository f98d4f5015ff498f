#include <doctest/doctest.h>

#include <cmath>

#include "tests/cuda/device_calls.h"
#include "tests/cuda/reference.h"

namespace sconce::gpu {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
constexpr int64_t kSteps = 4, kBatch = 3, kInput = 5, kHidden = 6;

struct Layer {
  Numbers w_ih, w_hh, b_ih, b_hh;
};
Layer layer_of(int64_t gates, int64_t input, uint32_t seed, DType dtype) {
  return {rounded(random_numbers(gates * kHidden * input, seed), dtype),
          rounded(random_numbers(gates * kHidden * kHidden, seed + 1), dtype),
          rounded(random_numbers(gates * kHidden, seed + 2), dtype),
          rounded(random_numbers(gates * kHidden, seed + 3), dtype)};
}

// One direction of one layer. Returns the output [T, B, H]; h and c become the last states.
Numbers run(int64_t mode, const Layer& layer, const Numbers& x, int64_t width, Numbers& h, Numbers& c, bool reverse) {
  const int64_t gates = mode == 2 ? 4 : mode == 3 ? 3 : 1;
  Numbers out(static_cast<size_t>(kSteps * kBatch * kHidden));
  for (int64_t step = 0; step < kSteps; ++step) {
    const int64_t t = reverse ? kSteps - 1 - step : step;
    const Numbers before = h;
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t u = 0; u < kHidden; ++u) {
        double in[4] = {}, back[4] = {};
        for (int64_t g = 0; g < gates; ++g) {
          const int64_t row = g * kHidden + u;
          in[g] = layer.b_ih[static_cast<size_t>(row)].real();
          back[g] = layer.b_hh[static_cast<size_t>(row)].real();
          for (int64_t i = 0; i < width; ++i)
            in[g] += layer.w_ih[static_cast<size_t>(row * width + i)].real() *
                     x[static_cast<size_t>((t * kBatch + b) * width + i)].real();
          for (int64_t i = 0; i < kHidden; ++i)
            back[g] += layer.w_hh[static_cast<size_t>(row * kHidden + i)].real() *
                       before[static_cast<size_t>(b * kHidden + i)].real();
        }
        const auto at = static_cast<size_t>(b * kHidden + u);
        double result = 0;
        if (mode == 2) {
          const double cell =
              sigmoid(in[1] + back[1]) * c[at].real() + sigmoid(in[0] + back[0]) * std::tanh(in[2] + back[2]);
          c[at] = cell;
          result = sigmoid(in[3] + back[3]) * std::tanh(cell);
        } else if (mode == 3) {
          const double keep = sigmoid(in[1] + back[1]);
          result = (1 - keep) * std::tanh(in[2] + sigmoid(in[0] + back[0]) * back[2]) + keep * before[at].real();
        } else {
          const double sum = in[0] + back[0];
          result = mode == 0 ? std::max(sum, 0.0) : std::tanh(sum);
        }
        h[at] = result;
        out[static_cast<size_t>((t * kBatch + b) * kHidden + u)] = result;
      }
  }
  return out;
}

}  // namespace

TEST_CASE("_cudnn_rnn: two layers in both directions, every kind of cell") {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16})
    for (const int64_t mode : {0, 1, 2, 3}) {
      const int64_t gates = mode == 2 ? 4 : mode == 3 ? 3 : 1;
      const Numbers x = rounded(random_numbers(kSteps * kBatch * kInput, 2), dtype);
      const Numbers hx = rounded(random_numbers(4 * kBatch * kHidden, 3), dtype),
                    cx = rounded(random_numbers(4 * kBatch * kHidden, 4), dtype);
      std::vector<Tensor> weights;
      Numbers input = x, hy, cy;
      int64_t width = kInput;
      for (int64_t layer = 0; layer < 2; ++layer) {
        Numbers sides[2];
        for (int64_t side = 0; side < 2; ++side) {
          const int64_t number = 2 * layer + side;
          const Layer w = layer_of(gates, width, static_cast<uint32_t>(20 + 10 * number), dtype);
          for (const auto& [values, sizes] :
               {std::pair<const Numbers*, std::vector<int64_t>>{&w.w_ih, {gates * kHidden, width}},
                {&w.w_hh, {gates * kHidden, kHidden}},
                {&w.b_ih, {gates * kHidden}},
                {&w.b_hh, {gates * kHidden}}})
            weights.push_back(on_device(*values, sizes, dtype));
          const auto part = [&](const Numbers& all) {
            return Numbers(all.begin() + number * kBatch * kHidden, all.begin() + (number + 1) * kBatch * kHidden);
          };
          Numbers h = part(hx), c = part(cx);
          sides[side] = run(mode, w, input, width, h, c, side == 1);
          hy.insert(hy.end(), h.begin(), h.end());
          cy.insert(cy.end(), c.begin(), c.end());
        }
        width = 2 * kHidden;
        input.assign(static_cast<size_t>(kSteps * kBatch * width), 0);
        for (int64_t row = 0; row < kSteps * kBatch; ++row)
          for (int64_t u = 0; u < width; ++u)
            input[static_cast<size_t>(row * width + u)] =
                sides[u / kHidden][static_cast<size_t>(row * kHidden + u % kHidden)];
      }
      std::vector<const Tensor*> list;
      for (const Tensor& w : weights) list.push_back(&w);
      const Tensor states = on_device(hx, {4, kBatch, kHidden}, dtype),
                   cells = on_device(cx, {4, kBatch, kHidden}, dtype);
      // float32 uses TF32.
      const double tolerance = dtype == DType::kFloat64 ? 1e-10 : 2e-2;
      CAPTURE(mode);
      CAPTURE(dtype_name(dtype));
      const auto result =
          _cudnn_rnn(on_device(x, {kSteps, kBatch, kInput}, dtype), {list.data(), list.size()}, 4, nullptr, states,
                     mode == 2 ? &cells : nullptr, mode, kHidden, 0, 2, false, 0.0, false, true, {}, nullptr);
      CHECK(difference(result[0], {kSteps, kBatch, 2 * kHidden}, input, tolerance) == "");
      CHECK(difference(result[1], {4, kBatch, kHidden}, hy, tolerance) == "");
      if (mode == 2) CHECK(difference(result[2], {4, kBatch, kHidden}, cy, tolerance) == "");
    }
}

TEST_CASE("_thnn_fused_lstm_cell: gates, states and what training would keep") {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16})
    for (const bool bias : {true, false}) {
      const auto numbers = [&](int64_t count, uint32_t seed) { return rounded(random_numbers(count, seed), dtype); };
      const Numbers a = numbers(kBatch * 4 * kHidden, 1), b = numbers(kBatch * 4 * kHidden, 2),
                    c = numbers(kBatch * kHidden, 3), one = numbers(4 * kHidden, 4), two = numbers(4 * kHidden, 5);
      Numbers hy(c.size()), cy(c.size()), kept(a.size());
      for (int64_t i = 0; i < kBatch * kHidden; ++i) {
        double gate[4];
        for (int64_t g = 0; g < 4; ++g) {
          const auto at = static_cast<size_t>(i / kHidden * 4 * kHidden + g * kHidden + i % kHidden);
          const auto bias_at = static_cast<size_t>(g * kHidden + i % kHidden);
          const double sum = a[at].real() + b[at].real() + (bias ? one[bias_at].real() + two[bias_at].real() : 0);
          kept[at] = gate[g] = g == 2 ? std::tanh(sum) : sigmoid(sum);
        }
        const double cell = gate[1] * c[static_cast<size_t>(i)].real() + gate[0] * gate[2];
        cy[static_cast<size_t>(i)] = cell;
        hy[static_cast<size_t>(i)] = gate[3] * std::tanh(cell);
      }
      const Tensor first = on_device(one, {4 * kHidden}, dtype), second = on_device(two, {4 * kHidden}, dtype);
      const auto result = _thnn_fused_lstm_cell(
          on_device(a, {kBatch, 4 * kHidden}, dtype), on_device(b, {kBatch, 4 * kHidden}, dtype),
          on_device(c, {kBatch, kHidden}, dtype), bias ? &first : nullptr, bias ? &second : nullptr);
      CHECK(difference(result[0], {kBatch, kHidden}, hy, tolerance_of(dtype)) == "");
      CHECK(difference(result[1], {kBatch, kHidden}, cy, tolerance_of(dtype)) == "");
      CHECK(difference(result[2], {kBatch, 4 * kHidden}, kept, tolerance_of(dtype)) == "");
    }
}

TEST_CASE("_cudnn_rnn: arguments that do not fit") {
  const Tensor x = on_device(Numbers(30), {2, 3, 5}, DType::kFloat32),
               h = on_device(Numbers(18), {1, 3, 6}, DType::kFloat32);
  const Tensor w = on_device(Numbers(30), {6, 5}, DType::kFloat32), u = on_device(Numbers(36), {6, 6}, DType::kFloat32);
  const Tensor* const list[] = {&w, &u};
  const auto call = [&](int64_t mode, double dropout, bool train, TensorList weights, const Tensor& state) {
    return _cudnn_rnn(x, weights, 2, nullptr, state, nullptr, mode, 6, 0, 1, false, dropout, train, false, {}, nullptr);
  };
  CHECK_NOTHROW(call(1, 0, false, {list, 2}, h));
  CHECK_THROWS_AS(call(2, 0, false, {list, 2}, h), Error);   // no cells
  CHECK_THROWS_AS(call(9, 0, false, {list, 2}, h), Error);   // no such mode
  CHECK_THROWS_AS(call(1, 0.5, true, {list, 2}, h), Error);  // would draw random numbers
  CHECK_THROWS_AS(call(1, 0, false, {list, 1}, h), Error);   // a weight is missing
  CHECK_THROWS_AS(call(1, 0, false, {list, 2}, x), Error);   // not a state
}

}  // namespace sconce::gpu
