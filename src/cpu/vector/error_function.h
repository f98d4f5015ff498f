// erf in double precision in a form that the compiler vectorises; vector_math.h has it for float. Within 1 ulp; NaN
// gives NaN, -0 gives -0.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace sconce {

// Coefficients from the highest power down.
template <class... Next>
[[gnu::always_inline]] inline double horner(double x, double value, Next... next) {
  ((value = std::fma(value, x, next)), ...);
  return value;
}

// Minimax polynomials: x + x p(x^2) up to 0.85, then 1 - e^-q(|x|), where q stands for -ln(erfc).
[[gnu::always_inline]] inline double error_function(double x) {
  const double s = x * x;
  const double p = horner(s, 0x1.6e5e53e0a42fbp-27, -0x1.50fdf79208d18p-23, 0x1.b830f0aaed293p-20,
                          -0x1.f4b1ccceb773bp-17, 0x1.f9a1961bc5d43p-14, -0x1.c02da79130e2bp-11, 0x1.565bccd0ab472p-8,
                          -0x1.b82ce31121f71p-6, 0x1.ce2f21a03e8e5p-4, -0x1.812746b037998p-2, 0x1.06eba8214db68p-3);
  const double small = std::fma(p, x, x);
  // From 6 on erf is 1 in double precision.
  const double magnitude = std::fabs(x), u = (magnitude > 6.0 ? 6.0 : magnitude) - 0.85;
  const double q = horner(u, -0x1.affac45910200p-40, 0x1.86a0b6628ed41p-35, -0x1.47460526bcae7p-31,
                          0x1.50b0fa691df10p-28, -0x1.d7f906e9f9351p-26, 0x1.d015278b4874ep-24, -0x1.29fc263309a82p-22,
                          0x1.e5b695fd69e64p-23, 0x1.09078b04c78f3p-19, -0x1.a88b740f70189p-17, 0x1.61a4d6553f7cap-15,
                          -0x1.1ad6a674502f7p-14, -0x1.8dd8012e8ce2fp-13, 0x1.1cdbec050e648p-9, -0x1.7be2b60ddb220p-7,
                          0x1.898f100c9b396p-5, 0x1.a55ddb2c473f2p-1, 0x1.31ca237ad19a6p+1, 0x1.78fb512ea17cep+0);
  // e^-q = 2^n e^r, |r| <= ln(2) / 2; n is never below -55.
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  const double rounded = std::fma(-q, M_LOG2E, kRound), n = rounded - kRound;
  const double r = std::fma(-n, 2.3190468138462996e-17, std::fma(-n, M_LN2, -q));
  const double e = horner(r, 0x1.ad65ab14c372dp-26, 0x1.28b37d05385eep-22, 0x1.71df462aa3488p-19, 0x1.a019925d3015cp-16,
                          0x1.a01a010f7b1a4p-13, 0x1.6c16c187ac539p-10, 0x1.11111111311f5p-7, 0x1.555555554f2a0p-5,
                          0x1.55555555554a0p-3, 0x1.0000000000010p-1, 1.0, 1.0);
  const double power = std::bit_cast<double>(std::bit_cast<uint64_t>(e) + (std::bit_cast<uint64_t>(rounded) << 52));
  const double large = std::copysign(1.0 - power, x);
  return magnitude >= 0.85 ? large : small;  // NaN goes through the polynomial
}

}  // namespace sconce
