// Values for tests on a device: made on the host, computed in double, compared with what comes back.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sconce/tensor.h"

namespace sconce::gpu {

inline constexpr Device kGpu{DeviceType::kCuda, 0};
using Numbers = std::vector<std::complex<double>>;

// Numbers in [-1, 1), equal for equal seeds; with imaginary parts if `complex`. Below: integers in [low, high).
Numbers random_numbers(int64_t count, uint32_t seed, bool complex = false);
Numbers random_whole(int64_t count, uint32_t seed, int64_t low, int64_t high);
Numbers real_parts(Numbers numbers);
int64_t count_of(IntSpan sizes);

// A row-major tensor on the device, rounded to the dtype.
Tensor on_device(const Numbers& numbers, std::vector<int64_t> sizes, DType dtype);
// Numbers in row-major order.
Numbers numbers_of(const Tensor& t);
// The numbers as the dtype rounds them.
Numbers rounded(const Numbers& numbers, DType dtype);

// "" if all are within tolerance * (1 + |expected|), else describes the first that is not. NaN equals NaN.
std::string difference(const Numbers& got, const Numbers& expected, double tolerance);
double tolerance_of(DType dtype);
// Also compares sizes.
std::string difference(const Tensor& got, std::vector<int64_t> sizes, const Numbers& expected, double tolerance);

// [m, k] @ [k, n]
Numbers product(const Numbers& a, const Numbers& b, int64_t m, int64_t k, int64_t n);
Numbers transposed(const Numbers& a, int64_t rows, int64_t columns, bool conjugate = false);

}  // namespace sconce::gpu
