#include "tests/cuda/reference.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "sconce/float_types.h"
#include "sconce/model.h"

namespace sconce::gpu {
namespace {

uint32_t next(uint32_t& state) {
  state = state * 1664525 + 1013904223;
  return state >> 8;
}

void write(void* at, std::complex<double> value, DType dtype) {
  const auto put = [&](auto v, size_t offset = 0) { std::memcpy(static_cast<char*>(at) + offset, &v, sizeof(v)); };
  switch (dtype) {
    case DType::kFloat32:
      return put(static_cast<float>(value.real()));
    case DType::kFloat64:
      return put(value.real());
    case DType::kFloat16:
      return put(Half(static_cast<float>(value.real())));
    case DType::kBFloat16:
      return put(BFloat16(static_cast<float>(value.real())));
    case DType::kComplex64:
      put(static_cast<float>(value.real()));
      return put(static_cast<float>(value.imag()), 4);
    case DType::kComplex128:
      put(value.real());
      return put(value.imag(), 8);
    case DType::kBool:
      return put(value.real() != 0);
    case DType::kUInt8:
      return put(static_cast<uint8_t>(value.real()));
    case DType::kInt8:
      return put(static_cast<int8_t>(value.real()));
    case DType::kInt16:
      return put(static_cast<int16_t>(value.real()));
    case DType::kInt32:
      return put(static_cast<int32_t>(value.real()));
    case DType::kInt64:
      return put(static_cast<int64_t>(value.real()));
    default:
      SCONCE_FAIL(kUnsupported, "test numbers of ", dtype_name(dtype));
  }
}

template <class T>
double read_as(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return static_cast<double>(value);
}

std::complex<double> read(const char* at, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return read_as<float>(at);
    case DType::kFloat64:
      return read_as<double>(at);
    case DType::kFloat16:
      return read_as<Half>(at);
    case DType::kBFloat16:
      return read_as<BFloat16>(at);
    case DType::kComplex64:
      return {read_as<float>(at), read_as<float>(at + 4)};
    case DType::kComplex128:
      return {read_as<double>(at), read_as<double>(at + 8)};
    case DType::kBool:
      return read_as<uint8_t>(at) != 0;
    case DType::kUInt8:
      return read_as<uint8_t>(at);
    case DType::kInt8:
      return read_as<int8_t>(at);
    case DType::kInt16:
      return read_as<int16_t>(at);
    case DType::kInt32:
      return read_as<int32_t>(at);
    case DType::kInt64:
      return read_as<int64_t>(at);
    default:
      SCONCE_FAIL(kUnsupported, "test numbers of ", dtype_name(dtype));
  }
}

}  // namespace

Numbers random_numbers(int64_t count, uint32_t seed, bool complex) {
  uint32_t state = seed * 2654435761u + 1;
  const auto draw = [&] { return static_cast<double>(next(state)) / 0x1p23 - 1; };
  Numbers numbers(static_cast<size_t>(count));
  for (auto& number : numbers) {
    const double re = draw();
    number = {re, complex ? draw() : 0};
  }
  return numbers;
}

Numbers random_whole(int64_t count, uint32_t seed, int64_t low, int64_t high) {
  uint32_t state = seed * 2654435761u + 7;
  Numbers numbers(static_cast<size_t>(count));
  for (auto& number : numbers) number = static_cast<double>(low + static_cast<int64_t>(next(state)) % (high - low));
  return numbers;
}

Numbers real_parts(Numbers numbers) {
  for (auto& number : numbers) number = number.real();
  return numbers;
}

int64_t count_of(IntSpan sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

Tensor on_device(const Numbers& numbers, std::vector<int64_t> sizes, DType dtype) {
  Tensor host = Tensor::empty(sizes, dtype);
  SCONCE_CHECK(host.numel() == static_cast<int64_t>(numbers.size()), kInternal, "numbers for ", describe(host));
  for (size_t i = 0; i < numbers.size(); ++i)
    write(static_cast<char*>(host.data()) + i * host.itemsize(), numbers[i], dtype);
  return copy_to(host, kGpu);
}

Numbers numbers_of(const Tensor& t) {
  const Tensor host = copy_to(t, Device{});
  Numbers numbers(static_cast<size_t>(host.numel()));
  std::vector<int64_t> at(static_cast<size_t>(host.dim()), 0);
  for (auto& number : numbers) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * host.stride(static_cast<int64_t>(d));
    number = read(static_cast<const char*>(host.data()) + offset * static_cast<int64_t>(host.itemsize()), host.dtype());
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < host.size(static_cast<int64_t>(d))) break;
      at[d] = 0;
    }
  }
  return numbers;
}

Numbers rounded(const Numbers& numbers, DType dtype) {
  Numbers result = numbers;
  for (auto& number : result) {
    char bytes[16] = {};
    write(bytes, number, dtype);
    number = read(bytes, dtype);
  }
  return result;
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return 1e-10;
    case DType::kFloat32:
    case DType::kComplex64:
      return 1e-4;
    case DType::kFloat16:
      return 5e-3;
    case DType::kBFloat16:
      return 4e-2;
    default:
      return 0;
  }
}

std::string difference(const Numbers& got, const Numbers& expected, double tolerance) {
  if (got.size() != expected.size())
    return std::to_string(got.size()) + " numbers for " + std::to_string(expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const auto a = got[i], b = expected[i];
    if (std::isnan(a.real()) && std::isnan(b.real())) continue;
    if (a == b || std::abs(a - b) <= tolerance * (1 + std::abs(b))) continue;
    return "number " + std::to_string(i) + " is " + std::to_string(a.real()) + " + " + std::to_string(a.imag()) +
           "i, expected " + std::to_string(b.real()) + " + " + std::to_string(b.imag()) + "i";
  }
  return {};
}

std::string difference(const Tensor& got, std::vector<int64_t> sizes, const Numbers& expected, double tolerance) {
  if (!got.defined()) return "no tensor";
  if (got.is_cpu()) return "not on the device";
  if (!std::equal(sizes.begin(), sizes.end(), got.sizes().begin(), got.sizes().end()))
    return describe(got) + " for " + to_string(IntSpan(sizes));
  return difference(numbers_of(got), expected, tolerance);
}

Numbers product(const Numbers& a, const Numbers& b, int64_t m, int64_t k, int64_t n) {
  Numbers c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        c[static_cast<size_t>(i * n + j)] += a[static_cast<size_t>(i * k + p)] * b[static_cast<size_t>(p * n + j)];
  return c;
}

Numbers transposed(const Numbers& a, int64_t rows, int64_t columns, bool conjugate) {
  Numbers t(a.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const auto value = a[static_cast<size_t>(i * columns + j)];
      t[static_cast<size_t>(j * rows + i)] = conjugate ? std::conj(value) : value;
    }
  return t;
}

}  // namespace sconce::gpu
