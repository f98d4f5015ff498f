#include "src/cpu/linalg/factorise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace sconce;

namespace {

// Column-major.
template <class T>
struct Matrix {
  Matrix(int rows, int columns)
      : m(rows), n(columns), values(static_cast<size_t>(rows) * static_cast<size_t>(columns)) {}
  T& operator()(int r, int c) {
    return values[static_cast<size_t>(c) * static_cast<size_t>(m) + static_cast<size_t>(r)];
  }
  const T& operator()(int r, int c) const { return const_cast<Matrix&>(*this)(r, c); }
  T* data() { return values.data(); }
  int m, n;
  std::vector<T> values;
};

template <class T>
Matrix<T> noise(int m, int n, unsigned seed = 1) {
  Matrix<T> a(m, n);
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (T& x : a.values) x = static_cast<T>(uniform(engine));
  return a;
}
template <class T>
Matrix<double> times(const Matrix<T>& a, const Matrix<T>& b, bool a_transposed = false, bool b_transposed = false) {
  Matrix<double> c(a_transposed ? a.n : a.m, b_transposed ? b.m : b.n);
  const int k = a_transposed ? a.m : a.n;
  for (int i = 0; i < c.m; ++i)
    for (int j = 0; j < c.n; ++j)
      for (int l = 0; l < k; ++l)
        c(i, j) += static_cast<double>(a_transposed ? a(l, i) : a(i, l)) *
                   static_cast<double>(b_transposed ? b(j, l) : b(l, j));
  return c;
}
template <class T, class U>
double difference(const Matrix<T>& a, const Matrix<U>& b) {
  REQUIRE(a.m == b.m);
  REQUIRE(a.n == b.n);
  double most = 0;
  for (size_t i = 0; i < a.values.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a.values[i]) - static_cast<double>(b.values[i])));
  return most;
}
template <class T>
double tolerance(int n) {
  return 40 * (n + 10) * static_cast<double>(std::numeric_limits<T>::epsilon());
}
template <class T>
Matrix<T> identity(int m, int n) {
  Matrix<T> a(m, n);
  for (int i = 0; i < std::min(m, n); ++i) a(i, i) = 1;
  return a;
}
// A random triangular matrix with a small condition number.
template <class T>
Matrix<T> triangle(int n, bool upper, bool unit) {
  Matrix<T> a = noise<T>(n, n, 3);
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c) {
      if (upper ? r > c : r < c) a(r, c) = 0;
      if (r != c) a(r, c) /= static_cast<T>(n);
      if (r == c) a(r, c) = unit ? T(1) : a(r, c) + (a(r, c) < 0 ? T(-1) : T(1));
    }
  return a;
}
template <class T>
Matrix<T> positive(int n) {
  const Matrix<double> square = times(noise<T>(n, n), noise<T>(n, n), false, true);
  Matrix<T> a(n, n);
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c) a(r, c) = static_cast<T>(square(r, c) / n + (r == c));
  return a;
}

}  // namespace

TEST_CASE_TEMPLATE("factorise: triangular systems of every kind", T, float, double) {
  for (const int n : {1, 5, 17, 64, 65, 150})
    for (const int columns : {1, 4, 33})
      for (const bool upper : {false, true})
        for (const bool unit : {false, true})
          for (const bool left : {false, true})
            for (const char trans : {'N', 'T'}) {
              const Matrix<T> exact = noise<T>(left ? n : columns, left ? columns : n);
              const Matrix<T> a = triangle<T>(n, upper, unit);
              const Matrix<double> b = left ? times(a, exact, trans == 'T') : times(exact, a, false, trans == 'T');
              Matrix<T> stored = a, x(exact.m, exact.n);
              for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<T>(b.values[i]);
              // The other triangle, which trsm() must not read.
              for (int r = 0; r < n; ++r)
                for (int c = 0; c < n; ++c)
                  if (upper ? r > c : r < c) stored(r, c) = T(NAN);
              if (unit)
                for (int i = 0; i < n; ++i) stored(i, i) = T(7);
              factorise::trsm(left ? 'L' : 'R', upper ? 'U' : 'L', unit ? 'U' : 'N', x.m, x.n, stored.data(), x.data(),
                              trans);
              CHECK_MESSAGE(difference(x, exact) < tolerance<T>(n), "n ", n, " columns ", columns, " upper ", upper,
                            " unit ", unit, " left ", left, " trans ", trans);
            }
}

TEST_CASE_TEMPLATE("factorise: Cholesky, its systems and its inverse", T, float, double) {
  for (const int n : {1, 16, 64, 65, 200})
    for (const char uplo : {'L', 'U'}) {
      const Matrix<T> a = positive<T>(n);
      Matrix<T> factor = a;
      int info = -1;
      factorise::potrf(uplo, n, factor.data(), info);
      CHECK(info == 0);
      for (int r = 0; r < n; ++r)
        for (int c = 0; c < n; ++c)
          if (uplo == 'L' ? r < c : r > c) factor(r, c) = 0;
      CHECK(difference(times(factor, factor, uplo == 'U', uplo == 'L'), a) < tolerance<T>(n));
      const Matrix<T> exact = noise<T>(n, 5);
      const Matrix<double> b = times(a, exact);
      Matrix<T> x(n, 5);
      for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<T>(b.values[i]);
      factorise::potrs(uplo, n, 5, factor.data(), x.data(), info);
      CHECK(difference(x, exact) < 10 * tolerance<T>(n));
      factorise::potri(uplo, n, factor.data(), info);
      CHECK(info == 0);
      for (int r = 0; r < n; ++r)
        for (int c = 0; c < r; ++c)
          (uplo == 'L' ? factor(c, r) : factor(r, c)) = uplo == 'L' ? factor(r, c) : factor(c, r);
      CHECK(difference(times(factor, a), identity<T>(n, n)) < 10 * tolerance<T>(n));
    }
}

TEST_CASE_TEMPLATE("factorise: Cholesky says which minor is not positive", T, float, double) {
  for (const int n : {10, 150})
    for (const int at : {1, 5, n - 1}) {
      Matrix<T> a = positive<T>(n);
      a(at, at) = T(-1);
      int info = 0;
      factorise::potrf('L', n, a.data(), info);
      CHECK(info == at + 1);
    }
  T zero[1] = {0};
  int info = 0;
  factorise::potri('L', 1, zero, info);
  CHECK(info == 1);
}

TEST_CASE_TEMPLATE("factorise: LU with pivots, and its systems", T, float, double) {
  for (const auto& [m, n] :
       {std::pair(1, 1), {16, 16}, {40, 40}, {130, 130}, {200, 37}, {37, 200}, {300, 8}, {5, 400}}) {
    const Matrix<T> a = noise<T>(m, n);
    Matrix<T> lu = a;
    const int k = std::min(m, n);
    std::vector<int> pivots(static_cast<size_t>(k));
    int info = -1;
    factorise::getrf(m, n, lu.data(), pivots.data(), info);
    CHECK(info == 0);
    Matrix<T> l = identity<T>(m, k), u(k, n), swapped = a;
    for (int c = 0; c < n; ++c)
      for (int r = 0; r < m; ++r) {
        if (r > c && c < k) {
          l(r, c) = lu(r, c);
          CHECK(std::abs(lu(r, c)) <= T(1));
        }
        if (r <= c && r < k) u(r, c) = lu(r, c);
      }
    for (int i = 0; i < k; ++i) {
      REQUIRE(pivots[static_cast<size_t>(i)] >= i + 1);
      for (int c = 0; c < n; ++c) std::swap(swapped(i, c), swapped(pivots[static_cast<size_t>(i)] - 1, c));
    }
    CHECK(difference(times(l, u), swapped) < tolerance<T>(k));
    if (m != n) continue;
    for (const char trans : {'N', 'T'}) {
      const Matrix<T> exact = noise<T>(n, 6);
      const Matrix<double> b = times(a, exact, trans == 'T');
      Matrix<T> x(n, 6);
      for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<T>(b.values[i]);
      factorise::getrs(trans, n, 6, lu.data(), pivots.data(), x.data(), info);
      CHECK(difference(times(a, x, trans == 'T'), b) < 20 * tolerance<T>(n));
    }
  }
}

TEST_CASE_TEMPLATE("factorise: LU names the first column without a pivot", T, float, double) {
  for (const int n : {6, 120})
    for (const int at : {0, 3, n - 1}) {
      Matrix<T> a = noise<T>(n, n);
      for (int r = 0; r < n; ++r) a(r, at) = 0;
      std::vector<int> pivots(static_cast<size_t>(n));
      int info = 0;
      factorise::getrf(n, n, a.data(), pivots.data(), info);
      CHECK(info == at + 1);
    }
}

TEST_CASE_TEMPLATE("factorise: QR, Q and products with Q", T, float, double) {
  for (const auto& [m, n] : {std::pair(1, 1), {16, 16}, {100, 100}, {150, 40}, {40, 150}, {90, 70}}) {
    const Matrix<T> a = noise<T>(m, n);
    Matrix<T> factored = a;
    const int k = std::min(m, n);
    std::vector<T> tau(static_cast<size_t>(k)), work(1);
    int info = -1;
    const auto sized = [&](auto call) {
      T size{};
      call(&size, -1);
      work.assign(static_cast<size_t>(size), T(NAN));
      call(work.data(), static_cast<int>(size));
    };
    sized([&, m = m, n = n](T* memory, int size) {
      factorise::geqrf(m, n, factored.data(), tau.data(), memory, size, info);
    });
    Matrix<T> r(k, n), q(m, m);
    for (int c = 0; c < n; ++c)
      for (int i = 0; i <= std::min(c, k - 1); ++i) r(i, c) = factored(i, c);
    for (int c = 0; c < k; ++c)
      for (int i = 0; i < m; ++i) q(i, c) = factored(i, c);
    sized([&, m = m](T* memory, int size) { factorise::orgqr(m, m, k, q.data(), tau.data(), memory, size, info); });
    CHECK(difference(times(q, q, true), identity<T>(m, m)) < tolerance<T>(m));
    Matrix<T> reduced(m, k);
    for (int c = 0; c < k; ++c)
      for (int i = 0; i < m; ++i) reduced(i, c) = q(i, c);
    CHECK(difference(times(reduced, r), a) < tolerance<T>(m));
    for (const bool left : {false, true})
      for (const char trans : {'N', 'T'}) {
        const Matrix<T> c = noise<T>(left ? m : 7, left ? 7 : m, 5);
        Matrix<T> product = c;
        sized([&, m = m](T* memory, int size) {
          factorise::ormqr(left ? 'L' : 'R', trans, product.m, product.n, k, factored.data(), m, tau.data(),
                           product.data(), memory, size, info);
        });
        CHECK(difference(product, left ? times(q, c, trans == 'T') : times(c, q, false, trans == 'T')) <
              tolerance<T>(m));
      }
  }
}

TEST_CASE_TEMPLATE("factorise: reflectors of tiny, huge and no numbers", T, float, double) {
  const double tiny = static_cast<double>(std::numeric_limits<T>::min()) * 4,
               huge = static_cast<double>(std::numeric_limits<T>::max()) / 4;
  for (const double scale : {tiny, 1.0, huge}) {
    T a[3] = {static_cast<T>(scale * 0.36), static_cast<T>(scale * 0.48), static_cast<T>(scale * 0.8)}, tau = 0,
      work[4096];
    int info = 0;
    factorise::geqrf(3, 1, a, &tau, work, 4096, info);
    CHECK(static_cast<double>(a[0]) / scale == doctest::Approx(-1).epsilon(1e-5));
    CHECK(static_cast<double>(tau) == doctest::Approx(1.36).epsilon(1e-5));
    CHECK(static_cast<double>(a[1]) == doctest::Approx(0.48 / 1.36).epsilon(1e-5));
  }
  T alone[3] = {2, 0, 0}, tau = 5, work[4096];
  int info = 0;
  factorise::geqrf(3, 1, alone, &tau, work, 4096, info);
  CHECK(tau == 0);
  CHECK(alone[0] == 2);
}

TEST_CASE_TEMPLATE("factorise: eigenvectors of symmetric matrices", T, float, double) {
  for (const int n : {3, 16, 100})
    for (const char uplo : {'L', 'U'}) {
      const Matrix<T> a = positive<T>(n);
      Matrix<T> vectors = a;
      for (int r = 0; r < n; ++r)
        for (int c = 0; c < n; ++c)
          if (uplo == 'L' ? r < c : r > c) vectors(r, c) = T(NAN);  // must not be read
      Matrix<T> values(n, 1), alone = vectors, only(n, 1);
      int info = -1;
      REQUIRE(factorise::syevd('V', uplo, n, vectors.data(), values.data(), info));
      CHECK(info == 0);
      CHECK(difference(times(vectors, vectors, true), identity<T>(n, n)) < tolerance<T>(n));
      Matrix<T> scaled = vectors;
      for (int c = 0; c < n; ++c)
        for (int r = 0; r < n; ++r) scaled(r, c) *= values(c, 0);
      CHECK(difference(times(a, vectors), scaled) < 4 * tolerance<T>(n));
      CHECK(std::is_sorted(values.values.begin(), values.values.end()));
      REQUIRE(factorise::syevd('N', uplo, n, alone.data(), only.data(), info));
      CHECK(difference(only, values) < 4 * tolerance<T>(n));
    }
  Matrix<T> infinite = positive<T>(4), huge = infinite, values(4, 1);
  infinite(3, 0) = T(INFINITY);
  for (T& x : huge.values) x *= std::numeric_limits<T>::max() / 100;
  int info = 0;
  CHECK(!factorise::syevd('V', 'L', 4, infinite.data(), values.data(), info));
  CHECK(!factorise::syevd('V', 'L', 4, huge.data(), values.data(), info));
}

// Subnormal numbers have few digits, so the column must be scaled before a reflector is computed.
TEST_CASE_TEMPLATE("factorise: reflectors of the smallest numbers", T, float, double) {
  for (const double size : {1.0, 8.0, 1000.0}) {
    CAPTURE(size);
    const int m = 9, n = 3;
    Matrix<T> a = noise<T>(m, n, 5);
    for (T& x : a.values) x *= static_cast<T>(size) * std::numeric_limits<T>::denorm_min() * T(50);
    std::vector<T> tau(n), work(1);
    int info = 0;
    factorise::geqrf<T>(m, n, a.data(), tau.data(), work.data(), -1, info);
    work.resize(static_cast<size_t>(work[0]));
    factorise::geqrf<T>(m, n, a.data(), tau.data(), work.data(), static_cast<int>(work.size()), info);
    T answer{};
    factorise::orgqr<T>(m, n, n, a.data(), tau.data(), &answer, -1, info);
    work.resize(static_cast<size_t>(answer));
    factorise::orgqr<T>(m, n, n, a.data(), tau.data(), work.data(), static_cast<int>(work.size()), info);
    Matrix<double> identity(n, n);
    for (int i = 0; i < n; ++i) identity(i, i) = 1;
    CHECK(difference(times(a, a, true), identity) < tolerance<T>(m));
  }
}
