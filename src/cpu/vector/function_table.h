// FunctionTable: a smooth function of one number within bounds, by polynomials fitted piece by piece at construction:
// for functions that take far longer to compute. In double, to about 1e-11 if the pieces are short enough: sufficient
// for results in single precision. Immutable after construction.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace sconce {

class FunctionTable {
 public:
  // f is called 8 times for each piece.
  FunctionTable(double (*f)(double), double low, double high, int pieces)
      : low_(low), high_(high), per_unit_(pieces / (high - low)), terms_(static_cast<size_t>(pieces)) {
    const double width = (high - low) / pieces;
    for (size_t piece = 0; piece < terms_.size(); ++piece) {
      std::array<double, kTerms> values;
      for (size_t j = 0; j < kTerms; ++j)
        values[j] = f(low + width * (static_cast<double>(piece) + (1 + std::cos(angle(j))) / 2));
      terms_[piece] = polynomial(values);
    }
  }

  bool holds(double x) const noexcept { return x >= low_ && x < high_; }
  // The function at x, which must be within the bounds.
  double at(double x) const noexcept {
    const double place = (x - low_) * per_unit_;
    const auto piece = std::min(static_cast<size_t>(place), terms_.size() - 1);
    const double u = 2 * (place - static_cast<double>(piece)) - 1, square = u * u;
    const auto& c = terms_[piece];
    const auto pair = [&](size_t k) { return std::fma(c[k + 1], u, c[k]); };
    return std::fma(std::fma(pair(6), square, pair(4)), square * square, std::fma(pair(2), square, pair(0)));
  }

 private:
  static constexpr size_t kTerms = 8;
  static double angle(size_t node) { return M_PI * (static_cast<double>(node) + 0.5) / kTerms; }

  // Through the values at the zeros of Chebyshev's polynomial of degree 8, in powers of u from -1 to 1.
  static std::array<double, kTerms> polynomial(const std::array<double, kTerms>& values) {
    std::array<double, kTerms> sum{}, before{}, now{};
    before[0] = 1;  // T0, T1, ...
    now[1] = 1;
    for (size_t k = 0; k < kTerms; ++k) {
      double factor = 0;
      for (size_t j = 0; j < kTerms; ++j) factor += values[j] * std::cos(static_cast<double>(k) * angle(j));
      factor *= (k == 0 ? 1.0 : 2.0) / kTerms;
      for (size_t i = 0; i < kTerms; ++i) sum[i] += factor * before[i];
      std::array<double, kTerms> next{};
      for (size_t i = 0; i < kTerms; ++i) next[i] = (i ? 2 * now[i - 1] : 0) - before[i];
      before = now;
      now = next;
    }
    return sum;
  }

  double low_, high_, per_unit_;
  std::vector<std::array<double, kTerms>> terms_;
};

}  // namespace sconce
