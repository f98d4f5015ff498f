#include "src/cpu/elementwise/functions.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/cpu/vector/error_function.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("erf: double precision, as PyTorch") { run_kernel("statistics.cases", "erf", cpu::erf); }

TEST_CASE("erf: double precision, beside long double") {
  long double worst = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x = i * 6.5e-5;
    const long double exact = std::erf(static_cast<long double>(x));
    const auto rounded = static_cast<double>(exact);
    const double unit = std::nextafter(rounded, 2.0) - rounded;
    worst = std::max(worst, std::fabs(static_cast<long double>(error_function(x)) - exact) / unit);
  }
  CHECK(worst < 1.05L);
}
