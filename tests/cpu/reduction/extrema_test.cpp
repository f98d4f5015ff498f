#include "src/cpu/reduction/extrema.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/cpu/elementwise/elementwise_ops.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

namespace {
constexpr const char* kFile = "statistics.cases";
}

TEST_CASE("amax: rows and wholes, NaN wins, as PyTorch") { run_kernel(kFile, "amax", cpu::amax); }
TEST_CASE("amin: rows and wholes, NaN wins, as PyTorch") { run_kernel(kFile, "amin", cpu::amin); }
TEST_CASE("aminmax: everything in one walk, as PyTorch") {
  run_cases(kFile, "aminmax", [](Case& c) { return listed(cpu::aminmax(c.tensor(0), std::nullopt, c.boolean(1))); });
}

TEST_CASE("amax, amin, aminmax: long, by several threads, NaN and the extrema anywhere") {
  const int before = kernel_threads();
  for (int threads : {1, 2, 3}) {
    set_kernel_threads(threads);
    for (int64_t at : {0, 7, 199999, 200000, 399998})
      for (bool nan : {false, true}) {
        CAPTURE(threads);
        CAPTURE(at);
        CAPTURE(nan);
        Tensor t = Tensor::empty(std::vector<int64_t>{399999}, DType::kFloat32);
        for (int64_t i = 0; i < t.numel(); ++i) t.data_as<float>()[i] = static_cast<float>(i % 1000) * 0.25f;
        t.data_as<float>()[at] = nan ? std::numeric_limits<float>::quiet_NaN() : 1e6f;
        t.data_as<float>()[(at + 5) % t.numel()] = -1e6f;
        const auto value = [](const Tensor& of) { return *of.data_as<float>(); };
        const auto right = [&](float found, float expected) { return nan ? std::isnan(found) : found == expected; };
        const auto [least, greatest] = cpu::aminmax(t, std::nullopt, false);
        CHECK(right(value(least), -1e6f));
        CHECK(right(value(greatest), 1e6f));
        // A strided input: every third element.
        const Tensor column = t.as_strided(std::vector<int64_t>{133333}, std::vector<int64_t>{3}, at % 3);
        CHECK(right(value(cpu::amax(t, {}, false)), 1e6f));
        CHECK(right(value(cpu::amin(t, {}, false)), -1e6f));
        CHECK(right(value(cpu::amax(column, {}, false)), 1e6f));
        CHECK(right(value(cpu::aminmax(column, std::nullopt, false)[1]), 1e6f));
      }
  }
  set_kernel_threads(before);
}
