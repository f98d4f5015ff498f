// The regularised incomplete gamma functions, P(a, x) and Q(a, x) = 1 - P. At the ends of the domain, and if one of
// the two is NaN, the results are those of ATen's igamma and igammac (torch 2.15).
#pragma once

#include <cstdint>

namespace sconce {

double lower_gamma(double a, double x);
double upper_gamma(double a, double x);

// For float32 results: exact enough for them, and several times faster for rows.
struct SingleGamma {
  bool upper;
  double operator()(double a, double x) const;
  void row(int64_t count, double* out, const double* a, const double* x) const noexcept;
};

}  // namespace sconce
