// Division of places by sizes that all threads of a kernel share. Of dividends below 2^31 a multiplication and a shift
// take its place; larger ones are divided.
#pragma once

#include <cstdint>

namespace sconce::cuda {

class Divider {
 public:
  Divider() = default;
  // 1 in place of divisors below 1, as sizes of tensors without elements are: nothing is divided by them.
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
  // Leaves the quotient in n and gives the remainder.
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
