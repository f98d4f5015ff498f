#include "src/cpu/indexing/nonzero.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "sconce/error.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
using Ints = std::vector<int64_t>;

TEST_CASE("nonzero: as PyTorch, stored by columns") { run_kernel("indexing.cases", "nonzero", cpu::nonzero); }

TEST_CASE("nonzero_static: as PyTorch") { run_kernel("indexing.cases", "nonzero_static", cpu::nonzero_static); }

TEST_CASE("nonzero: large, one and two threads") {
  const int before = kernel_threads();
  for (int threads : {1, 2}) {
    set_kernel_threads(threads);
    Tensor t = Tensor::empty(Ints{37, 501, 7}, DType::kFloat32);
    std::vector<int64_t> want;
    for (int64_t i = 0; i < t.numel(); ++i) {
      t.data_as<float>()[i] = i * 2654435761u % 5 == 0 ? std::nanf("") : (i % 2 ? 0.0f : -0.0f);
      if (t.data_as<float>()[i] != 0) want.push_back(i);
    }
    const Tensor got = cpu::nonzero(t);
    REQUIRE(got.size(0) == static_cast<int64_t>(want.size()));
    int64_t wrong = 0;
    for (int64_t k = 0; k < got.size(0); ++k) {
      const int64_t* at = got.data_as<int64_t>() + k;
      const int64_t n = got.size(0);
      wrong += (at[0] * 501 + at[n]) * 7 + at[2 * n] != want[static_cast<size_t>(k)];
    }
    CHECK(wrong == 0);
  }
  set_kernel_threads(before);
}
