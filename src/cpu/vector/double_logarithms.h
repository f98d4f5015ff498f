// Logarithms of rows of double with AVX-512, which looks up sixteen inverses in registers. Errors stay below 1 ulp.
#pragma once

#include <cstdint>

namespace sconce {

enum class LogBase { kE, kTwo, kTen };

// to[i] = the logarithm of from[i], which must be positive, normal and at most half of the largest double. Elements of
// `to` may be those of `from`. The CPU has AVX-512.
void double_logarithms(LogBase base, int64_t count, const double* from, double* to) noexcept;

}  // namespace sconce
