// Division by a size that all threads of a kernel share. Dividends below 2^31 take a multiplication and a shift; larger
// ones take a real division.
#pragma once

#include <cstdint>

namespace sconce::cuda {

class Divider {
 public:
  Divider() = default;
  // Divisors below 1 (sizes of empty tensors) become 1; nothing is divided by them.
  __host__ explicit Divider(int64_t divisor) : divisor_(divisor < 1 ? 1 : divisor) {
    if (divisor_ > INT32_MAX) {
      factor_ = 0;
      shift_ = 31;  // the quotient of every small dividend is 0
      return;
    }
    shift_ = 0;
    while (int64_t{1} << shift_ < divisor_) ++shift_;
    const auto d = static_cast<uint64_t>(divisor_);
    factor_ = static_cast<uint32_t>((((uint64_t{1} << shift_) - d) << 32) / d + 1);
  }

  __device__ uint32_t small_quotient(uint32_t n) const { return (__umulhi(n, factor_) + n) >> shift_; }  // n < 2^31
  __device__ int64_t quotient(int64_t n) const {
    return static_cast<uint64_t>(n) >> 31 ? n / divisor_ : int64_t{small_quotient(static_cast<uint32_t>(n))};
  }
  // Replaces n by the quotient and returns the remainder.
  __device__ int64_t take(int64_t& n) const {
    const int64_t q = quotient(n), rest = n - q * divisor_;
    n = q;
    return rest;
  }
  __device__ uint32_t take_small(uint32_t& n) const {
    const uint32_t q = small_quotient(n), rest = n - q * static_cast<uint32_t>(divisor_);
    n = q;
    return rest;
  }
  __host__ __device__ int64_t divisor() const { return divisor_; }

 private:
  int64_t divisor_ = 1;
  uint32_t factor_ = 1;
  int shift_ = 0;
};

}  // namespace sconce::cuda
