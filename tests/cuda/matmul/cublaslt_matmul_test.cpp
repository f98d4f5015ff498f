#include "src/cuda/matmul/cublaslt_matmul.h"

#include <doctest/doctest.h>

#include "sconce/model.h"
#include "src/device/device_backend.h"
#include "tests/cuda/device_calls.h"
#include "tests/cuda/reference.h"

namespace sconce::gpu {
namespace {

constexpr DType kFloats[] = {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16};

Numbers plus(const Numbers& a, const Numbers& b) {
  Numbers sum = a;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += b[i % b.size()];
  return sum;
}
Numbers times(Numbers a, double factor) {
  for (auto& value : a) value *= factor;
  return a;
}

}  // namespace

TEST_CASE("mm_out: rows and columns packed, and neither") {
  for (const DType dtype : kFloats)
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1}, {3, 70, 5}, {65, 33, 17}}) {
      const Numbers a = rounded(random_numbers(m * k, 1), dtype), b = rounded(random_numbers(k * n, 2), dtype);
      const Numbers expected = product(a, b, m, k, n);
      Tensor out = on_device(Numbers(static_cast<size_t>(m * n)), {m, n}, dtype);
      const Tensor x = on_device(a, {m, k}, dtype);
      mm_out(out, x, on_device(b, {k, n}, dtype));
      const double tolerance = tolerance_of(dtype) * 3;
      CHECK(difference(out, {m, n}, expected, tolerance) == "");
      const std::vector<int64_t> sizes{k, n}, strides{1, k};
      mm_out(out, x, on_device(transposed(b, k, n), {n, k}, dtype).as_strided(sizes, strides, 0));
      CHECK(difference(out, {m, n}, expected, tolerance) == "");
    }
}

TEST_CASE("addmm_out: scaled, with a row that is broadcast") {
  for (const DType dtype : kFloats) {
    const Numbers a = rounded(random_numbers(4 * 6, 1), dtype), b = rounded(random_numbers(6 * 5, 2), dtype),
                  c = rounded(random_numbers(5, 3), dtype);
    Tensor out = on_device(Numbers(20), {4, 5}, dtype);
    addmm_out(out, on_device(c, {5}, dtype), on_device(a, {4, 6}, dtype), on_device(b, {6, 5}, dtype), 0.5, 2.0);
    CHECK(difference(out, {4, 5}, plus(times(product(a, b, 4, 6, 5), 2), times(c, 0.5)), tolerance_of(dtype) * 2) ==
          "");
  }
}

TEST_CASE("bmm_out: a batch") {
  for (const DType dtype : kFloats) {
    const Numbers a = rounded(random_numbers(3 * 4 * 6, 1), dtype), b = rounded(random_numbers(3 * 6 * 5, 2), dtype);
    Numbers expected;
    for (int64_t i = 0; i < 3; ++i) {
      const Numbers one = product({a.begin() + i * 24, a.begin() + (i + 1) * 24},
                                  {b.begin() + i * 30, b.begin() + (i + 1) * 30}, 4, 6, 5);
      expected.insert(expected.end(), one.begin(), one.end());
    }
    Tensor out = on_device(Numbers(60), {3, 4, 5}, dtype);
    bmm_out(out, on_device(a, {3, 4, 6}, dtype), on_device(b, {3, 6, 5}, dtype));
    CHECK(difference(out, {3, 4, 5}, expected, tolerance_of(dtype) * 2) == "");
    const Numbers c = rounded(random_numbers(5, 3), dtype);
    baddbmm_out(out, on_device(c, {5}, dtype), on_device(a, {3, 4, 6}, dtype), on_device(b, {3, 6, 5}, dtype), 1, 1);
    CHECK(difference(out, {3, 4, 5}, plus(expected, c), tolerance_of(dtype) * 2) == "");
  }
}

// TF32 keeps ten bits, so 1 + 2^-12 becomes 1.
TEST_CASE("mm_out: float32 in TF32 only on a lane that allows it") {
  constexpr int64_t kSize = 256;
  const Numbers ones(kSize * kSize, 1), near(kSize * kSize, 1 + 0x1p-12);
  const double exact = kSize * (1 + 0x1p-12);
  for (const bool allowed : {false, true}) {
    const auto lane = backend().make_lane(kGpu, {.allow_tf32 = allowed});
    const DeviceStream::Scope scope(lane.get());
    Tensor out = on_device(ones, {kSize, kSize}, DType::kFloat32);
    mm_out(out, on_device(near, {kSize, kSize}, DType::kFloat32), on_device(ones, {kSize, kSize}, DType::kFloat32));
    const Numbers expected(kSize * kSize, allowed ? kSize : exact);
    CHECK(difference(out, {kSize, kSize}, expected, 1e-6) == "");
  }
}

TEST_CASE("_int_mm_out: exact sums of bytes") {
  const Numbers a = random_whole(17 * 32, 1, -128, 128), b = random_whole(32 * 8, 2, -128, 128);
  Tensor out = on_device(Numbers(17 * 8), {17, 8}, DType::kInt32);
  _int_mm_out(out, on_device(a, {17, 32}, DType::kInt8), on_device(b, {32, 8}, DType::kInt8));
  CHECK(difference(out, {17, 8}, product(a, b, 17, 32, 8), 0) == "");
}

TEST_CASE("mm_out: sizes that do not fit") {
  Tensor out = on_device(Numbers(4), {2, 2}, DType::kFloat32);
  const Tensor a = on_device(Numbers(6), {2, 3}, DType::kFloat32);
  CHECK_THROWS_AS(mm_out(out, a, a), Error);
  CHECK_THROWS_AS(mm_out(out, a, on_device(Numbers(6), {3, 2}, DType::kFloat64)), Error);
}

TEST_CASE("convolution: a sum of products") {
  for (const DType dtype : kFloats)
    for (const int64_t groups : {1, 2}) {
      constexpr int64_t kIn = 4, kOut = 6, kSize = 7, kKernel = 3;
      const int64_t each = kIn / groups;
      const Numbers x = rounded(random_numbers(2 * kIn * kSize * kSize, 1), dtype),
                    w = rounded(random_numbers(kOut * each * kKernel * kKernel, 2), dtype),
                    bias = rounded(random_numbers(kOut, 3), dtype);
      constexpr int64_t kTo = (kSize + 2 - kKernel) / 2 + 1;
      Numbers expected;
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t o = 0; o < kOut; ++o)
          for (int64_t r = 0; r < kTo; ++r)
            for (int64_t c = 0; c < kTo; ++c) {
              double sum = bias[static_cast<size_t>(o)].real();
              for (int64_t i = 0; i < each; ++i)
                for (int64_t p = 0; p < kKernel; ++p)
                  for (int64_t q = 0; q < kKernel; ++q) {
                    const int64_t row = 2 * r - 1 + p, column = 2 * c - 1 + q;
                    if (row < 0 || column < 0 || row >= kSize || column >= kSize) continue;
                    const int64_t channel = o / (kOut / groups) * each + i;
                    sum += x[static_cast<size_t>(((b * kIn + channel) * kSize + row) * kSize + column)].real() *
                           w[static_cast<size_t>(((o * each + i) * kKernel + p) * kKernel + q)].real();
                  }
              expected.push_back(sum);
            }
      const int64_t two[] = {2, 2}, one[] = {1, 1}, zero[] = {0, 0};
      const Tensor added = on_device(bias, {kOut}, dtype);
      const Tensor out =
          convolution(on_device(x, {2, kIn, kSize, kSize}, dtype), on_device(w, {kOut, each, kKernel, kKernel}, dtype),
                      &added, two, one, one, false, zero, groups);
      // float32 uses TF32.
      CHECK(difference(out, {2, kOut, kTo, kTo}, expected, dtype == DType::kFloat32 ? 1e-2 : tolerance_of(dtype) * 3) ==
            "");
    }
}

}  // namespace sconce::gpu
