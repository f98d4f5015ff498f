#include "src/cpu/linalg/linalg.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <thread>
#include <vector>

#include "sconce/float_types.h"
#include "src/cpu/matmul/products.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/view.h"

// Properties of results that are unique only up to signs and phases. tests/custom_ops/aten/aten_test.cpp compares
// unique results with PyTorch's.
namespace sconce {
namespace {

template <class T>
Tensor matrices(int64_t count, int64_t m, int64_t n, uint32_t seed) {
  const int64_t sizes[] = {count, m, n};
  Tensor tensor = Tensor::empty(sizes, kDType<T>);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const auto next = [&] {
      seed = seed * 1664525u + 1013904223u;
      return static_cast<double>(seed >> 8) / (1 << 23) - 1;
    };
    if constexpr (kIsComplex<T>) {
      const double re = next();
      tensor.data_as<T>()[i] = T(static_cast<typename T::value_type>(re), static_cast<typename T::value_type>(next()));
    } else {
      tensor.data_as<T>()[i] = static_cast<T>(next());
    }
  }
  return tensor;
}

Tensor adjoint(const Tensor& a) { return cpu::conj(cpu::transpose(a, -2, -1)); }

// Multiplies the first columns of a by the values and drops the others.
Tensor scale_columns(const Tensor& a, const Tensor& values) {
  const int64_t count = values.size(1);
  Tensor out = clone_contiguous(cpu::narrow(a, 2, 0, count));
  const Tensor wide = to_dtype(cpu::unsqueeze(values, 1), a.dtype());
  Tensor spread = Tensor::empty(out.sizes(), a.dtype());
  copy(wide, spread);
  return [&] {
    Tensor product = Tensor::empty(out.sizes(), DType::kComplex128);
    const Tensor x = to_dtype(out, DType::kComplex128), y = to_dtype(spread, DType::kComplex128);
    for (int64_t i = 0; i < product.numel(); ++i)
      product.data_as<ComplexDouble>()[i] = x.data_as<ComplexDouble>()[i] * y.data_as<ComplexDouble>()[i];
    return to_dtype(product, a.dtype());
  }();
}

double distance(const Tensor& a, const Tensor& b) {
  const Tensor x = contiguous(to_dtype(a, DType::kComplex128)), y = contiguous(to_dtype(b, DType::kComplex128));
  double worst = 0;
  for (int64_t i = 0; i < x.numel(); ++i)
    worst = std::max(worst, std::abs(x.data_as<ComplexDouble>()[i] - y.data_as<ComplexDouble>()[i]));
  return worst;
}

Tensor identity_like(const Tensor& a) {
  Tensor out = clone_contiguous(a);
  const int64_t n = a.size(2);
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double value = (i / n) % n == i % n ? 1 : 0;
    Tensor element = out.as_strided({}, {}, i);
    Tensor number = Tensor::empty({}, DType::kFloat64);
    *number.data_as<double>() = value;
    copy(number, element);
  }
  return out;
}

}  // namespace

TEST_CASE_TEMPLATE("_linalg_eigh: vectors are orthonormal and make up the matrix", T, float, double, ComplexFloat,
                   ComplexDouble) {
  const double close = sizeof(decltype(std::abs(T()))) == 4 ? 1e-4 : 1e-11;
  const Tensor half = matrices<T>(3, 7, 7, 5), a = cpu::bmm(half, contiguous(adjoint(half)));
  for (const char* uplo : {"L", "U"}) {
    const auto [values, vectors] = cpu::_linalg_eigh(a, uplo, true);
    const Tensor v = contiguous(vectors);
    CHECK(distance(cpu::bmm(v, contiguous(adjoint(v))), identity_like(a)) < close);
    CHECK(distance(cpu::bmm(scale_columns(v, values), contiguous(adjoint(v))), a) < 20 * close);
  }
}

TEST_CASE_TEMPLATE("_linalg_svd: the factors make up the matrix", T, float, double, ComplexFloat, ComplexDouble) {
  const double close = sizeof(decltype(std::abs(T()))) == 4 ? 1e-4 : 1e-11;
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{5, 5}, {7, 3}, {3, 7}})
    for (const bool full : {false, true}) {
      const Tensor a = matrices<T>(2, m, n, 9);
      const auto [u, s, vh] = cpu::_linalg_svd(a, full, true, std::nullopt);
      const Tensor left = scale_columns(contiguous(u), s), right = contiguous(cpu::narrow(vh, 1, 0, std::min(m, n)));
      CHECK(distance(cpu::bmm(left, right), a) < close);
      const Tensor product = cpu::bmm(contiguous(adjoint(u)), contiguous(u));
      CHECK(distance(product, identity_like(product)) < close);
      CHECK(distance(s, cpu::_linalg_svd(a, false, false, std::nullopt)[1]) < close);
    }
}

TEST_CASE_TEMPLATE("linalg_qr: the complete basis is orthonormal", T, float, double, ComplexFloat, ComplexDouble) {
  const double close = sizeof(decltype(std::abs(T()))) == 4 ? 1e-4 : 1e-11;
  const Tensor a = matrices<T>(2, 6, 4, 3);
  const auto [q, r] = cpu::linalg_qr(a, "complete");
  CHECK(distance(cpu::bmm(contiguous(q), contiguous(r)), a) < close);
  CHECK(distance(cpu::bmm(contiguous(q), contiguous(adjoint(q))), identity_like(q)) < close);
}

// The matrices are so large that LAPACK calls BLAS's blocked level-3 routines, whose work space threads share.
TEST_CASE("_linalg_svd, _linalg_eigh: many threads at once, matrices of many blocks") {
  constexpr int kThreads = 4, kRounds = 3;
  std::vector<double> worst(kThreads, 1e9);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&worst, t] {
      double largest = 0;
      for (int round = 0; round < kRounds; ++round) {
        const Tensor a = matrices<double>(1, 150 + t, 90 + 7 * round, static_cast<uint32_t>(t * kRounds + round));
        const auto [u, s, vh] = cpu::_linalg_svd(a, false, true, std::nullopt);
        largest = std::max(largest, distance(cpu::bmm(scale_columns(contiguous(u), s), contiguous(vh)), a));
        const Tensor gram = cpu::bmm(contiguous(adjoint(a)), a);
        const auto [values, vectors] = cpu::_linalg_eigh(gram, "L", true);
        const Tensor v = contiguous(vectors);
        largest = std::max(largest, distance(cpu::bmm(scale_columns(v, values), contiguous(adjoint(v))), gram));
      }
      worst[static_cast<size_t>(t)] = largest;
    });
  for (std::thread& thread : threads) thread.join();
  for (const double distance : worst) CHECK(distance < 1e-10);
}

}  // namespace sconce
