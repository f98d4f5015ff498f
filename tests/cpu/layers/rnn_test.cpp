#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "sconce/error.h"
#include "src/cpu/convolution/direct/convolution_isa.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/convolution_reference.h"
#include "tests/cpu/packed_weight.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

struct Network {
  Tensor input, weight0, weight1, bias0, bias1, h, c;
  int64_t hidden;
  bool reverse = false, biases = true;
};

Network network(int64_t steps, int64_t batch, int64_t inputs, int64_t hidden, DType dtype) {
  Network n{sample(Ints{steps, batch, inputs}, dtype, 1), sample(Ints{4 * hidden, inputs}, dtype, 2),
            sample(Ints{4 * hidden, hidden}, dtype, 3),   sample(Ints{4 * hidden}, dtype, 4),
            sample(Ints{4 * hidden}, dtype, 5),           sample(Ints{1, batch, hidden}, dtype, 6),
            sample(Ints{1, batch, hidden}, dtype, 7),     hidden};
  // Large weights would saturate all gates.
  for (Tensor* w : {&n.weight0, &n.weight1})
    each_index(w->sizes(), [&](const Ints& i) { set_element(*w, i, element(*w, i) / 8); });
  return n;
}

std::array<Tensor, 4> run(const Network& n, const Tensor& weight0, const Tensor& weight1, bool train = false) {
  return cpu::mkldnn_rnn_layer(n.input, weight0, weight1, n.bias0, n.bias1, n.h, n.c, n.reverse, {}, 2, n.hidden, 1,
                               n.biases, false, false, train);
}

// The LSTM's definition, computed in double.
std::array<Tensor, 3> reference(const Network& n) {
  const int64_t steps = n.input.size(0), batch = n.input.size(1), inputs = n.input.size(2), hidden = n.hidden;
  std::array<Tensor, 3> r = {Tensor::empty(Ints{steps, batch, hidden}, DType::kFloat64),
                             converted(n.h, DType::kFloat64), converted(n.c, DType::kFloat64)};
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t t = n.reverse ? steps - 1 - s : s;
    for (int64_t b = 0; b < batch; ++b) {
      std::vector<double> gates(static_cast<size_t>(4 * hidden));
      for (int64_t g = 0; g < 4 * hidden; ++g) {
        double sum = n.biases ? element(n.bias0, {g}) + element(n.bias1, {g}) : 0;
        for (int64_t i = 0; i < inputs; ++i) sum += element(n.input, {t, b, i}) * element(n.weight0, {g, i});
        for (int64_t i = 0; i < hidden; ++i) sum += element(r[1], {0, b, i}) * element(n.weight1, {g, i});
        gates[static_cast<size_t>(g)] = sum;
      }
      for (int64_t i = 0; i < hidden; ++i) {
        const auto gate = [&](int64_t k) { return gates[static_cast<size_t>(k * hidden + i)]; };
        const double cell = sigmoid(gate(1)) * element(r[2], {0, b, i}) + sigmoid(gate(0)) * std::tanh(gate(2));
        set_element(r[2], {0, b, i}, cell);
        set_element(r[1], {0, b, i}, sigmoid(gate(3)) * std::tanh(cell));
        set_element(r[0], {t, b, i}, element(r[1], {0, b, i}));
      }
    }
  }
  return r;
}

double difference(const Tensor& got, const Tensor& want) {
  double worst = 0;
  REQUIRE(to_string(got.sizes()) == to_string(want.sizes()));
  each_index(got.sizes(), [&](const Ints& i) {
    const double error = std::abs(element(got, i) - element(want, i));
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  });
  return worst;
}

// Reorders [4H, K] to oneDNN's [1, 1, K, 4, H].
Tensor packed_gates(const Tensor& weight, int64_t hidden) {
  const Ints dims{1, 1, weight.size(1), 4, hidden};
  Tensor turned = Tensor::empty(dims, weight.dtype());
  each_index(dims, [&](const Ints& i) { set_element(turned, i, element(weight, {i[3] * hidden + i[4], i[2]})); });
  return pack(turned, dims, {{16, 4}}, 1).tensor;
}

}  // namespace

TEST_CASE("mkldnn_rnn_layer: an LSTM, plain and packed, both directions") {
  const int before = kernel_threads();
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16})
    for (const auto& [steps, batch, inputs, hidden] :
         std::vector<std::array<int64_t, 4>>{{6, 2, 16, 16}, {1, 1, 3, 5}, {9, 11, 20, 33}}) {
      Network n = network(steps, batch, inputs, hidden, dtype);
      const double most = dtype == DType::kFloat32 ? 3e-6 : dtype == DType::kFloat16 ? 2e-3 : 1.6e-2;
      for (const bool reverse : {false, true})
        for (const bool biases : {false, true}) {
          n.reverse = reverse;
          n.biases = biases;
          const auto want = reference(n);
          for (const bool avx512 : {false, true}) {
            testing_convolution_avx512(avx512);
            for (const bool packed : {false, true}) {
              const auto got = run(n, packed ? packed_gates(n.weight0, hidden) : n.weight0,
                                   packed ? packed_gates(n.weight1, hidden) : n.weight1);
              for (size_t i = 0; i < 3; ++i) {
                CAPTURE(i);
                CHECK(got[i].dtype() == dtype);
                CHECK(got[i].is_contiguous());
                CHECK(difference(got[i], want[i]) <= most);
              }
              CHECK(!got[3].defined());
            }
          }
        }
    }
  set_kernel_threads(before);
}

TEST_CASE("mkldnn_rnn_layer: long sequences in chunks, several threads") {
  const int before = kernel_threads();
  Network n = network(40, 20, 6, 120, DType::kFloat32);  // 1.5 MB of gates
  for (const bool reverse : {false, true}) {
    n.reverse = reverse;
    const auto want = reference(n);
    for (const int threads : {1, 3}) {
      set_kernel_threads(threads);
      const auto got = run(n, n.weight0, n.weight1);
      for (size_t i = 0; i < 3; ++i) CHECK(difference(got[i], want[i]) <= 1e-5);
    }
  }
  set_kernel_threads(before);
}

TEST_CASE("mkldnn_rnn_layer: strides, no steps, no batch") {
  Network n = network(4, 3, 5, 6, DType::kFloat32);
  const auto want = run(n, n.weight0, n.weight1);
  Network turned = n;
  const Tensor moved = Tensor::empty_strided(Ints{4, 3, 5}, Ints{1, 4, 12}, DType::kFloat32);
  Tensor input = moved;
  each_index(input.sizes(), [&](const Ints& i) { set_element(input, i, element(n.input, i)); });
  turned.input = input;
  turned.h = with_gaps(n.h);
  turned.bias0 = with_gaps(n.bias0);
  const auto got = run(turned, with_gaps(n.weight0), with_gaps(n.weight1));
  for (size_t i = 0; i < 3; ++i) CHECK(difference(got[i], want[i]) <= 1e-6);
  // A state that is expanded over the batch.
  turned.c = n.c.as_strided(Ints{1, 3, 6}, Ints{0, 0, 1}, 0);
  CHECK(difference(run(turned, n.weight0, n.weight1)[2], reference(turned)[2]) <= 3e-6);

  n.input = sample(Ints{0, 3, 5}, DType::kFloat32, 1);
  const auto none = run(n, n.weight0, n.weight1);
  CHECK(none[0].numel() == 0);
  CHECK(difference(none[1], n.h) == 0);
  CHECK(difference(none[2], n.c) == 0);
  const Network empty = network(2, 0, 5, 6, DType::kFloat32);
  CHECK(run(empty, n.weight0, n.weight1)[0].numel() == 0);
  CHECK(run(n, n.weight0, n.weight1, true)[3].defined());
}

TEST_CASE("mkldnn_rnn_layer: refusals") {
  const Network n = network(2, 3, 5, 6, DType::kFloat32);
  const auto call = [&](const Tensor& weight0, const Tensor& h, int64_t mode, IntSpan batch_sizes) {
    return cpu::mkldnn_rnn_layer(n.input, weight0, n.weight1, n.bias0, n.bias1, h, n.c, false, batch_sizes, mode, 6, 1,
                                 true, false, false, false);
  };
  CHECK_NOTHROW(call(n.weight0, n.h, 2, {}));
  CHECK_THROWS_AS(call(n.weight0, n.h, 3, {}), Error);
  CHECK_THROWS_AS(call(n.weight0, n.h, 2, Ints{3, 2}), Error);
  CHECK_THROWS_AS(call(n.weight1, n.h, 2, {}), Error);
  CHECK_THROWS_AS(call(packed_gates(n.weight1, 6), n.h, 2, {}), Error);
  CHECK_THROWS_AS(call(n.weight0, sample(Ints{1, 2, 6}, DType::kFloat32, 1), 2, {}), Error);
  CHECK_THROWS_AS(call(n.weight0, converted(n.h, DType::kFloat64), 2, {}), Error);
}
