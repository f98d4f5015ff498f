#include "src/cpu/convolution/convolution.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

#include "sconce/error.h"
#include "src/cpu/convolution/direct/convolution_isa.h"
#include "src/device/compiled_threads.h"
#include "src/device/cpu_arena.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/convolution_reference.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

// Each instruction set that the CPU has, with one thread and with three.
template <class F>
void each_way(F f) {
  const int before = kernel_threads();
  for (const bool avx512 : {false, true})
    for (const int threads : {1, 3}) {
      testing_convolution_avx512(avx512);
      set_kernel_threads(threads);
      CAPTURE(avx512);
      CAPTURE(threads);
      f();
    }
  set_kernel_threads(before);
}

double tolerance(DType dtype) {
  return dtype == DType::kFloat64 ? 1e-13 : dtype == DType::kFloat32 ? 2e-6 : dtype == DType::kFloat16 ? 1e-3 : 8e-3;
}

Tensor run(const Tensor& input, const Tensor& weight, const Tensor* bias, const ReferenceConvolution& c) {
  const Ints more = c.output_padding.empty() ? Ints(c.stride.size(), 0) : c.output_padding;
  return cpu::convolution(input, weight, bias, c.stride, c.padding, c.dilation, c.transposed, more, c.groups);
}

void check(const Tensor& input, const Tensor& weight, const Tensor* bias, const ReferenceConvolution& c) {
  const Reference want = reference_convolution(input, weight, bias, c);
  CAPTURE(describe(input));
  CAPTURE(describe(weight));
  each_way([&] { CHECK(worst_error(run(input, weight, bias, c), want) <= tolerance(input.dtype())); });
}

}  // namespace

TEST_CASE("convolution: a layout that follows the compiler's threads, not ours") {
  const int before = kernel_threads();
  const auto channels_last = [](int compiled, int threads) {
    set_compiled_threads(compiled);
    set_kernel_threads(threads);
    const std::vector<int64_t> sizes{2, 4, 3, 3, 3}, strides{108, 1, 36, 12, 4}, weight_sizes{4, 4, 1, 1, 1};
    Tensor x = Tensor::empty_strided(sizes, strides, DType::kFloat32), w = Tensor::empty(weight_sizes, DType::kFloat32);
    std::fill_n(x.data_as<float>(), x.numel(), 1.f);
    std::fill_n(w.data_as<float>(), w.numel(), 1.f);
    const std::vector<int64_t> one{1, 1, 1}, zero{0, 0, 0};
    return cpu::convolution(x, w, nullptr, one, zero, one, false, zero, 1).stride(1) == 1;
  };
  CHECK(channels_last(0, 2));
  CHECK(channels_last(0, 1));
  CHECK(channels_last(8, 1));
  CHECK(!channels_last(1, 2));
  set_compiled_threads(0);
  set_kernel_threads(before);
}

TEST_CASE("convolution: as PyTorch, strides and refusals too") {
  for (const bool avx512 : {false, true}) {
    testing_convolution_avx512(avx512);
    set_compiled_threads(1);  // as PyTorch had; some formats depend on it
    run_kernel("convolution.cases", "convolution", cpu::convolution);
    set_compiled_threads(0);
  }
}

TEST_CASE("convolution: many channels, several blocks and passes") {
  for (const bool last : {false, true})
    for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{{70, 21}, {5, 83}, {40, 130}}) {
      Tensor x = sample(Ints{2, in, 9, 7}, DType::kFloat32, 1), w = sample(Ints{out, in, 3, 3}, DType::kFloat32, 2);
      const Tensor b = sample(Ints{out}, DType::kFloat32, 3);
      if (last) x = channels_last(x);
      check(x, w, &b, {{1, 1}, {1, 1}, {1, 1}, {}});
      if (last) check(x, channels_last(w), nullptr, {{2, 1}, {0, 2}, {1, 2}, {}});
    }
}

// Tiles of fewer sums take several steps of the input at once; lengths that are no multiple of that have a rest.
TEST_CASE("convolution: few pixels and any number of steps, random shapes") {
  std::mt19937_64 random(11);
  const auto pick = [&](std::initializer_list<int64_t> from) { return from.begin()[random() % from.size()]; };
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    const int64_t in = pick({1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 64}), out = pick({7, 8, 9, 16, 17, 24, 25, 32, 33, 48, 64});
    const int64_t kernel = pick({1, 1, 2, 3}), height = pick({1, 1, 2, 3}), width = pick({1, 2, 3, 4, 5, 7, 13});
    const DType dtype = random() % 4 ? DType::kFloat32 : DType::kBFloat16;
    Tensor x = sample(Ints{1, in, height, width}, dtype, seed);
    const Tensor w = sample(Ints{out, in, kernel, kernel}, dtype, seed + 100), b = sample(Ints{out}, dtype, seed + 200);
    if (random() % 2) x = channels_last(x);
    check(x, w, random() % 2 ? &b : nullptr, {{1, 1}, {kernel / 2 + 1, kernel / 2}, {1, 1}, {}});
  }
}

TEST_CASE("convolution: large images in bands") {
  const Tensor x = sample(Ints{1, 16, 70, 61}, DType::kFloat32, 1), w = sample(Ints{4, 16, 3, 3}, DType::kFloat32, 2);
  check(channels_last(x), w, nullptr, {{1, 1}, {1, 1}, {1, 1}, {}});
  check(x, w, nullptr, {{2, 2}, {1, 1}, {1, 1}, {}});
  const Tensor v = sample(Ints{2, 6, 9, 20, 21}, DType::kFloat32, 3),
               u = sample(Ints{3, 6, 2, 3, 3}, DType::kFloat32, 4);
  check(channels_last(v), u, nullptr, {{1, 2, 1}, {1, 1, 1}, {1, 1, 1}, {}});
  check(v, u, nullptr, {{1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {}});
  const Tensor line = sample(Ints{2, 3, 3000}, DType::kFloat32, 5), f = sample(Ints{2, 3, 11}, DType::kFloat32, 6);
  check(line, f, nullptr, {{3}, {4}, {2}, {}});
}

TEST_CASE("convolution: depthwise and grouped") {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16})
    for (const bool last : {false, true})
      for (const int64_t channels : {5, 24, 75}) {
        Tensor x = sample(Ints{2, channels, 8, 9}, dtype, 1);
        const Tensor b = sample(Ints{channels}, dtype, 2);
        if (last) x = channels_last(x);
        check(x, sample(Ints{channels, 1, 3, 3}, dtype, 3), &b, {{1, 1}, {1, 1}, {1, 1}, {}, false, channels});
        check(x, sample(Ints{channels, 1, 2, 3}, dtype, 3), nullptr, {{2, 1}, {0, 0}, {1, 2}, {}, false, channels});
      }
  for (const bool last : {false, true}) {
    Tensor x = sample(Ints{2, 24, 6, 5}, DType::kFloat32, 4);
    if (last) x = channels_last(x);
    check(x, sample(Ints{54, 8, 3, 3}, DType::kFloat32, 5), nullptr, {{1, 1}, {1, 1}, {1, 1}, {}, false, 3});
    check(x, sample(Ints{48, 1, 3, 3}, DType::kFloat32, 6), nullptr, {{1, 1}, {1, 1}, {1, 1}, {}, false, 24});
    check(x, sample(Ints{24, 5, 3, 2}, DType::kFloat32, 7), nullptr, {{2, 3}, {1, 0}, {1, 1}, {1, 2}, true, 3});
  }
}

TEST_CASE("convolution: every dtype, transposed and with gaps") {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt64})
    for (const bool transposed : {false, true}) {
      const Tensor x = sample(Ints{2, 6, 7, 9}, dtype, 1);
      const Tensor w = sample(transposed ? Ints{6, 4, 3, 2} : Ints{8, 3, 3, 2}, dtype, 2);
      const Tensor b = sample(Ints{8}, dtype, 3);
      const ReferenceConvolution c{{2, 3}, {1, 0}, {2, 1}, transposed ? Ints{1, 2} : Ints{}, transposed, 2};
      check(x, w, &b, c);
      check(with_gaps(x), with_gaps(w), nullptr, c);
      check(channels_last(x), channels_last(w), &b, c);
    }
  for (const DType dtype : {DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt8}) {
    Tensor x = sample(Ints{1, 2, 5, 6}, DType::kInt8, 1), w = sample(Ints{3, 2, 2, 2}, DType::kInt8, 2);
    if (dtype == DType::kUInt8)
      each_index(x.sizes(), [&](const Ints& i) { set_element(x, i, std::abs(element(x, i))); });
    if (dtype == DType::kUInt8)
      each_index(w.sizes(), [&](const Ints& i) { set_element(w, i, std::abs(element(w, i))); });
    check(converted(x, dtype), converted(w, dtype), nullptr, {{1, 1}, {1, 1}, {1, 1}, {}});
  }
}

TEST_CASE("convolution: outputs that no input reaches hold the bias") {
  const Tensor x = sample(Ints{1, 2, 3}, DType::kFloat32, 1), w = sample(Ints{2, 3, 1}, DType::kFloat32, 2);
  const Tensor b = sample(Ints{3}, DType::kFloat32, 3);
  check(x, w, &b, {{3}, {0}, {1}, {2}, true, 1});
}

TEST_CASE("convolution: NaN and infinity reach the outputs that read them and no other") {
  for (const bool last : {false, true}) {
    Tensor x = sample(Ints{1, 3, 6, 6}, DType::kFloat32, 1), w = sample(Ints{4, 3, 3, 3}, DType::kFloat32, 2);
    set_element(x, {0, 1, 0, 0}, NAN);
    set_element(x, {0, 2, 5, 5}, INFINITY);
    if (last) x = channels_last(x);
    const Tensor y = run(x, w, nullptr, {{1, 1}, {1, 1}, {1, 1}, {}});
    each_index(y.sizes(), [&](const Ints& i) {
      const bool low = i[2] <= 1 && i[3] <= 1, high = i[2] >= 4 && i[3] >= 4;
      CHECK(std::isfinite(element(y, i)) == !(low || high));
      if (low) CHECK(std::isnan(element(y, i)));
    });
  }
}

TEST_CASE("convolution: a constant weight is put in order once") {
  CpuArena::Ptr arena = CpuArena::create();
  const CpuArena::Scope scope(arena.get());
  const Tensor x = channels_last(sample(Ints{1, 8, 5, 5}, DType::kFloat32, 1));
  Tensor w = sample(Ints{8, 8, 3, 3}, DType::kFloat32, 2);
  w.storage()->set_immutable(true);
  const ReferenceConvolution same{{1, 1}, {1, 1}, {1, 1}, {}}, other{{2, 2}, {0, 0}, {1, 1}, {}};
  const Reference want = reference_convolution(x, w, nullptr, same);
  CHECK(worst_error(run(x, w, nullptr, same), want) <= 2e-6);
  CHECK(worst_error(run(x, w, nullptr, other), reference_convolution(x, w, nullptr, other)) <= 2e-6);
  // The bytes do not change in earnest; that they are not read again is seen by changing them.
  set_element(w, {0, 0, 1, 1}, 1000);
  CHECK(worst_error(run(x, w, nullptr, same), want) <= 2e-6);
  // Other views of the storage have orders of their own.
  const Tensor half = w.as_strided(Ints{4, 8, 3, 3}, Ints{72, 9, 3, 1}, 288);
  CHECK(worst_error(run(x, half, nullptr, same), reference_convolution(x, half, nullptr, same)) <= 2e-6);
  // The second run of a shape takes nothing from the system.
  const int64_t before = arena->system_allocations();
  run(x, w, nullptr, same);
  CHECK(arena->system_allocations() == before);
}

TEST_CASE("convolution: bias of another floating dtype only where ATen's own kernels run") {
  const Tensor x = sample(Ints{1, 2, 5, 5}, DType::kFloat64, 1), w = sample(Ints{3, 2, 2, 2}, DType::kFloat64, 2);
  const Tensor b = sample(Ints{3}, DType::kFloat32, 3);
  const ReferenceConvolution c{{1, 1}, {0, 0}, {1, 1}, {}};
  check(x, w, &b, c);
  const Tensor b64 = converted(b, DType::kFloat64), b32 = converted(b, DType::kInt32);
  CHECK_THROWS_AS(run(converted(x, DType::kFloat32), converted(w, DType::kFloat32), &b64, c), Error);
  CHECK_THROWS_AS(run(x, w, &b32, c), Error);
}
