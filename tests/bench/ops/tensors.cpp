// Tensors of bench::T, their numbers, and values of the stable interface.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "tests/bench/ops/calls.h"

namespace bench {
namespace {

uint64_t state = 1;
uint64_t next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}
double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

uint16_t half_of(float x) {
  const _Float16 h = static_cast<_Float16>(x);
  uint16_t bits;
  std::memcpy(&bits, &h, 2);
  return bits;
}
uint16_t bfloat_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
// Rounds to e4m3fn; normal numbers only.
uint8_t eighth_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127 + 7;
  if (exponent < 1) return 0;
  return static_cast<uint8_t>(bits >> 31 << 7 | static_cast<uint32_t>(std::min(exponent, 14)) << 3 | (bits >> 20 & 7));
}

void store(void* data, int64_t i, DType dtype, double x) {
  switch (dtype) {
    case kF32:
      static_cast<float*>(data)[i] = static_cast<float>(x);
      return;
    case kF64:
      static_cast<double*>(data)[i] = x;
      return;
    case kF16:
      static_cast<uint16_t*>(data)[i] = half_of(static_cast<float>(x));
      return;
    case kBF16:
      static_cast<uint16_t*>(data)[i] = bfloat_of(static_cast<float>(x));
      return;
    case kF8:
      static_cast<uint8_t*>(data)[i] = eighth_of(static_cast<float>(x));
      return;
    case kI64:
      static_cast<int64_t*>(data)[i] = static_cast<int64_t>(x);
      return;
    case kI32:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(x);
      return;
    case kI8:
      static_cast<int8_t*>(data)[i] = static_cast<int8_t>(x);
      return;
    case kU8:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(x);
      return;
    case kBool:
      static_cast<uint8_t*>(data)[i] = x != 0;
      return;
    case kC64:
      break;
  }
  throw std::logic_error("dtype");
}

template <class F>
T filled(const Sizes& sizes, DType dtype, const F& value) {
  T t = empty(sizes, dtype);
  void* data = nullptr;
  int64_t count = 0;
  check(aoti_torch_get_data_ptr(t.get(), &data));
  check(aoti_torch_get_numel(t.get(), &count));
  if (dtype == kC64) {
    for (int64_t i = 0; i < 2 * count; ++i) store(data, i, kF32, value());
  } else {
    for (int64_t i = 0; i < count; ++i) store(data, i, dtype, value());
  }
  return t;
}

Sizes dense(const Sizes& sizes) {
  Sizes strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0; step *= sizes[d]) strides[d] = step;
  return strides;
}

Sizes sizes_of(const T& t, bool strides = false) {
  int64_t rank = 0, *values = nullptr;
  check(aoti_torch_get_dim(t.get(), &rank));
  check((strides ? aoti_torch_get_strides : aoti_torch_get_sizes)(t.get(), &values));
  return {values, values + rank};
}

}  // namespace

void check(AOTITorchError error) {
  if (error) throw std::runtime_error(torch_exception_get_what());
}

void restart_numbers() { state = 1; }

T empty(const Sizes& sizes, DType dtype) {
  AtenTensorHandle handle = nullptr;
  check(aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(), dense(sizes).data(), dtype, 0, -1,
                                 &handle));
  return T(handle);
}
T randn(const Sizes& sizes, DType dtype) {
  // Sums of uniform numbers: nearly normal, and equal with every libm.
  return filled(sizes, dtype, [] {
    const uint64_t bits = next();
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(bits >> 16 * i & 0xffff) / 65536;
    return (sum - 2) * 1.7320508;
  });
}
T uniform(const Sizes& sizes, double from, double to, DType dtype) {
  return filled(sizes, dtype, [&] { return from + (to - from) * unit(); });
}
T integers(const Sizes& sizes, int64_t from, int64_t to, DType dtype) {
  return filled(sizes, dtype,
                [&] { return static_cast<double>(from) + std::floor(unit() * static_cast<double>(to - from)); });
}
T shuffled(int64_t n) {
  std::vector<int64_t> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[next() % i]);
  return numbers(values);
}
T sorted(const Sizes& sizes, DType dtype) {
  int64_t at = 0;
  const int64_t row = sizes.back();
  return filled(sizes, dtype, [&] { return static_cast<double>(at++ % row) / static_cast<double>(row); });
}
T numbers(const std::vector<int64_t>& values, DType dtype) {
  size_t at = 0;
  return filled({static_cast<int64_t>(values.size())}, dtype, [&] { return static_cast<double>(values[at++]); });
}
T spd(int64_t batch, int64_t n, DType dtype) {
  std::vector<double> row(static_cast<size_t>(n * n));
  int64_t at = 0;
  return filled({batch, n, n}, dtype, [&] {
    if (at == 0)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j)
          row[static_cast<size_t>(i * n + j)] = row[static_cast<size_t>(j * n + i)] =
              i == j ? 2 * static_cast<double>(n) : unit() - 0.5;
    const double x = row[static_cast<size_t>(at)];
    at = (at + 1) % (n * n);
    return x;
  });
}

T T::strided(const Sizes& sizes, const Sizes& strides, int64_t offset) const {
  AtenTensorHandle handle = nullptr;
  check(aoti_torch__reinterpret_tensor(get(), static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(), offset,
                                       &handle));
  return T(handle);
}
T T::permuted(const std::vector<int>& order) const {
  const Sizes sizes = sizes_of(*this), strides = sizes_of(*this, true);
  Sizes new_sizes, new_strides;
  for (const int d : order) {
    new_sizes.push_back(sizes[static_cast<size_t>(d)]);
    new_strides.push_back(strides[static_cast<size_t>(d)]);
  }
  return strided(new_sizes, new_strides);
}
T T::transposed() const {
  std::vector<int> order(sizes_of(*this).size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order.end()[-1], order.end()[-2]);
  return permuted(order);
}
T T::channels_last() const {
  const Sizes sizes = sizes_of(*this);
  int32_t dtype = 0;
  check(aoti_torch_get_dtype(get(), &dtype));
  Sizes last{sizes[0]};
  last.insert(last.end(), sizes.begin() + 2, sizes.end());
  last.push_back(sizes[1]);
  std::vector<int> order{0, static_cast<int>(sizes.size()) - 1};
  for (int d = 1; d + 1 < static_cast<int>(sizes.size()); ++d) order.push_back(d);
  T t = empty(last, static_cast<DType>(dtype)).permuted(order);
  check(aoti_torch_copy_(t.get(), get(), 0));
  return t;
}

Call writing(T out, Call call) {
  return [out = std::move(out), call = std::move(call)] {
    call();
    AtenTensorHandle handle = nullptr;
    check(aoti_torch_new_tensor_handle(out.get(), &handle));
    take_results(&handle, 1);
  };
}

}  // namespace bench
