#include "src/cpu/onednn/onednn.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "src/cpu/convolution/convolution.h"
#include "src/cpu/convolution/onednn_convolution.h"
#include "src/cpu/matmul/gemm/onednn_matmul.h"
#include "src/cpu/matmul/matmul.h"
#include "src/device/cpu_arena.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/onednn_use.h"
#include "tests/cpu/packed_weight.h"

using namespace sconce;
using namespace sconce::testing;
using onednn::Use;

namespace {

[[maybe_unused]] const bool applied = (onednn::testing_use(use_of_this_run()), true);

bool can(DType dtype) {
  if (onednn::suits(dtype) && onednn::available()) return true;
  MESSAGE("skipped: oneDNN does not serve ", dtype_name(dtype), " here");
  return false;
}

Tensor constant(const Tensor& tensor) {
  tensor.storage()->set_immutable(true);
  return tensor;
}

MatrixProduct product(const Tensor& a, const Tensor& b, Tensor& c) {
  MatrixProduct p{};
  p.dtype = a.dtype();
  p.m = a.size(0);
  p.k = a.size(1);
  p.n = b.size(1);
  p.a = {a.data(), 0, a.stride(0), a.stride(1)};
  p.b = {b.data(), 0, b.stride(0), b.stride(1)};
  p.c = c.data();
  p.c_row_stride = c.stride(0);
  p.c_column_stride = 1;
  return p;
}

}  // namespace

TEST_CASE("oneDNN: large products are its own, small and narrow ones are not") {
  if (!can(DType::kFloat32)) return;
  const Using policy(Use::kByPolicy);
  const auto takes = [](int64_t m, int64_t n, int64_t k, DType dtype) {
    const Tensor a = sample(Ints{m, k}, dtype, 1), b = sample(Ints{k, n}, dtype, 2);
    Tensor c = Tensor::empty(Ints{m, n}, dtype);
    return onednn::matrix_product(product(a, b, c));
  };
  CHECK(takes(256, 256, 256, DType::kFloat32));
  CHECK_FALSE(takes(64, 64, 64, DType::kFloat32));
  CHECK_FALSE(takes(4, 2048, 2048, DType::kFloat32));
  CHECK_FALSE(takes(256, 256, 256, DType::kFloat16));
  CHECK_FALSE(takes(256, 256, 256, DType::kFloat64));
  if (can(DType::kBFloat16)) CHECK(takes(128, 128, 128, DType::kBFloat16));
}

TEST_CASE("oneDNN: beside our kernels, and again from another thread count") {
  if (!can(DType::kFloat32)) return;
  const Tensor a = sample(Ints{130, 257}, DType::kFloat32, 1), b = sample(Ints{257, 300}, DType::kFloat32, 2);
  const Tensor self = sample(Ints{300}, DType::kFloat32, 3);
  Tensor want = Tensor::empty(Ints{130, 300}, DType::kFloat32), got = Tensor::empty(Ints{130, 300}, DType::kFloat32);
  {
    const Using never(Use::kNever);
    cpu::addmm_out(want, self, a, b, 1, 1);
  }
  const Using library(Use::kAlways);
  const int before = kernel_threads();
  for (const int threads : {1, 2, 3, 1}) {
    set_kernel_threads(threads);
    cpu::addmm_out(got, self, a, b, 1, 1);
    double worst = 0;
    for (int64_t i = 0; i < got.numel(); ++i)
      worst = std::max<double>(worst, std::abs(got.data_as<float>()[i] - want.data_as<float>()[i]));
    CHECK(worst < 1e-3);
  }
  set_kernel_threads(before);
}

TEST_CASE("oneDNN: what it computes needs no memory after the first call") {
  if (!can(DType::kFloat32)) return;
  const Using library(Use::kAlways);
  const CpuArena::Ptr arena = CpuArena::create();
  const CpuArena::Scope scope(arena.get());
  const Tensor x = channels_last(sample(Ints{1, 16, 12, 12}, DType::kFloat32, 1));
  const Tensor w = constant(sample(Ints{32, 16, 3, 3}, DType::kFloat32, 2));
  const Ints one{1, 1}, zero{0, 0};
  const auto run = [&] { return cpu::convolution(x, w, nullptr, one, one, one, false, zero, 1); };
  run();
  const int64_t allocations = arena->system_allocations();
  for (int i = 0; i < 3; ++i) run();
  CHECK(arena->system_allocations() == allocations);
}

TEST_CASE("oneDNN: a weight that PyTorch packed is used as it lies, or put in order once") {
  if (!can(DType::kFloat32)) return;
  const Using library(Use::kAlways);
  const Tensor x = sample(Ints{32, 64}, DType::kFloat32, 1), w = sample(Ints{64, 64}, DType::kFloat32, 2);
  const Reference want =
      reference_convolution(x.as_strided(Ints{32, 64, 1}, Ints{64, 1, 1}, 0),
                            w.as_strided(Ints{64, 64, 1}, Ints{64, 1, 1}, 0), nullptr, {{1}, {0}, {1}, {0}, false, 1});
  // A packing that oneDNN makes for AVX-512, and one that it does not make.
  for (const std::vector<Block>& blocks : {std::vector<Block>{{16, 1}, {64, 0}}, std::vector<Block>{{4, 0}, {8, 1}}}) {
    const Packed packed = pack(w, Ints{64, 64}, blocks, 1);
    const double* none[] = {nullptr};
    const Tensor got = cpu::_linear_pointwise(x, packed.tensor, nullptr, "none", none, "");
    CHECK(worst_error(got.as_strided(Ints{32, 64, 1}, Ints{64, 1, 1}, 0), want) < 1e-6);
  }
}

namespace {

double worst_difference(const Tensor& a, const Tensor& b) {
  double worst = 0;
  each_index(a.sizes(), [&](const Ints& i) {
    const double x = element(a, i);
    worst = std::max(worst, std::abs(x - element(b, i)) / (1 + std::abs(x)));
  });
  return worst;
}

template <class F>
double library_against_own(F f) {
  Tensor want, got;
  {
    const Using never(Use::kNever);
    want = f();
  }
  {
    const Using library(Use::kAlways);
    got = f();
  }
  return worst_difference(want, got);
}

}  // namespace

// SCONCE_TEST_SEED draws other shapes. The limits in onednn_matmul.cpp and onednn_convolution.cpp were found with it.
TEST_CASE("oneDNN: random shapes as our own kernels") {
  if (!can(DType::kFloat32)) return;
  const char* seed = std::getenv("SCONCE_TEST_SEED");
  std::mt19937 random(seed ? static_cast<uint32_t>(std::atoi(seed)) : 1);
  const auto pick = [&](int64_t low, int64_t high) { return low + static_cast<int64_t>(random() % (high - low + 1)); };
  const double* none[] = {nullptr};
  const int before = kernel_threads();
  for (int i = 0; i < 150; ++i) {
    set_kernel_threads(static_cast<int>(pick(1, 4)));
    const bool small = can(DType::kBFloat16) && pick(0, 1);
    const DType dtype = small ? DType::kBFloat16 : DType::kFloat32;
    const double tolerance = small ? 2e-2 : 1e-4;
    const int64_t m = pick(16, 70), n = pick(2, 90), k = pick(1, 100);
    const Tensor x = sample(Ints{m, k}, dtype, random()), w = constant(sample(Ints{n, k}, dtype, random()));
    const Tensor b = sample(Ints{n}, dtype, random()), o = sample(Ints{m, n}, dtype, random());
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(small);
    CHECK(library_against_own([&] { return cpu::_linear_pointwise(x, w, &b, "relu", none, ""); }) < tolerance);
    CHECK(library_against_own([&] { return cpu::_linear_pointwise_binary(x, o, w, &b, "mul"); }) < tolerance);
    CHECK(library_against_own([&] {
            Tensor out = Tensor::empty(Ints{m, n}, dtype);
            cpu::mm_out(out, x, w.as_strided(Ints{k, n}, Ints{1, k}, 0));
            return out;
          }) < tolerance);

    const bool depthwise = pick(0, 3) == 0;
    const int64_t groups = depthwise ? pick(8, 40) : pick(1, 2), in = depthwise ? 1 : pick(1, 20);
    const int64_t out = depthwise ? 1 : pick(1, 20), height = pick(5, 12), kernel = pick(1, 3), stride = pick(1, 2);
    const int64_t padding = pick(0, 1);
    const Ints strides{stride, stride}, paddings{padding, padding}, one{1, 1};
    Tensor image = sample(Ints{2, in * groups, height, 9}, dtype, random());
    if (pick(0, 2)) image = channels_last(image);
    const Tensor filter = constant(sample(Ints{out * groups, in, kernel, pick(1, 3)}, dtype, random()));
    const Tensor bias = sample(Ints{out * groups}, dtype, random());
    CAPTURE(groups);
    CAPTURE(in);
    CAPTURE(out);
    CAPTURE(kernel);
    CAPTURE(stride);
    CAPTURE(padding);
    Tensor other;
    CHECK(library_against_own([&] {
            other = cpu::mkldnn__convolution_pointwise(image, filter, &bias, paddings, strides, one, groups, "swish",
                                                       none, "");
            return other;
          }) < tolerance);
    CHECK(library_against_own([&] {
            return cpu::mkldnn__convolution_pointwise_binary(image, other, filter, &bias, paddings, strides, one,
                                                             groups, "sub", 1.0, "relu", none, "");
          }) < tolerance);
  }
  set_kernel_threads(before);
}
