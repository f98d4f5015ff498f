#include "src/tensor/copy.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "src/device/threads.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;
using Ints = std::vector<int64_t>;

TEST_CASE("copy: as PyTorch copies") {
  run_cases("copy.cases", "copy", [](Case& c) -> std::vector<Tensor> {
    copy(c.args.back().tensor(), c.args[c.args.size() - 2].tensor());
    return {};
  });
}

TEST_CASE("clone: keeps the order of dimensions") {
  run_cases("copy.cases", "clone", [](Case& c) { return std::vector{clone(c.tensor(0))}; });
}

TEST_CASE("clone_preserve_strides: keeps strides, gaps and overlaps") {
  run_cases("copy.cases", "clone_preserve_strides",
            [](Case& c) { return std::vector{clone_preserve_strides(c.tensor(0))}; });
}

TEST_CASE("to_dtype: the tensor itself or a converted clone") {
  run_cases("copy.cases", "to_dtype", [](Case& c) { return std::vector{to_dtype(c.tensor(0), DType::kFloat64)}; });
  const Tensor t = Tensor::empty(Ints{2}, DType::kInt8);
  CHECK(to_dtype(t, DType::kInt8).data() == t.data());
}

TEST_CASE("contiguous: the tensor itself or a packed copy") {
  const Tensor t = Tensor::empty(Ints{2, 3}, DType::kInt8);
  CHECK(contiguous(t).data() == t.data());
  const Tensor turned = t.as_strided(Ints{3, 2}, Ints{1, 3}, 0);
  std::memcpy(t.data(), "abcdef", 6);
  const Tensor packed = contiguous(turned);
  CHECK(packed.is_contiguous());
  CHECK(std::memcmp(packed.data(), "adbecf", 6) == 0);
}

// Large enough for several threads and for whole and broken tiles.
TEST_CASE("copy: large transpositions and conversions, one and two threads") {
  const int before = kernel_threads();
  for (int threads : {1, 2})
    for (DType to : {DType::kInt32, DType::kInt16, DType::kFloat64, DType::kFloat16, DType::kUInt8})
      for (DType from : {to, DType::kInt64}) {
        CAPTURE(threads);
        CAPTURE(dtype_name(from));
        CAPTURE(dtype_name(to));
        set_kernel_threads(threads);
        const int64_t b = 3, m = 203, n = 377;
        Tensor plain = Tensor::empty(Ints{b, m, n}, DType::kInt64);
        for (int64_t i = 0; i < plain.numel(); ++i) plain.data_as<int64_t>()[i] = i * 7 % 251;
        const Tensor source = to_dtype(plain, from);
        Tensor out = Tensor::empty(Ints{n, b, m}, to);
        copy(source.as_strided(Ints{n, b, m}, Ints{1, m * n, n}, 0), out);
        const Tensor back = to_dtype(out, DType::kInt64);
        int64_t wrong = 0;
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < b; ++j)
            for (int64_t k = 0; k < m; ++k)
              wrong += back.data_as<int64_t>()[(i * b + j) * m + k] != ((j * m + k) * n + i) * 7 % 251;
        CHECK(wrong == 0);
      }
  set_kernel_threads(before);
}

TEST_CASE("copy: float4 copies as it is and converts to nothing") {
  Tensor a = Tensor::empty(Ints{4}, DType::kFloat4E2M1FNx2), b = Tensor::empty(Ints{4}, DType::kFloat4E2M1FNx2);
  std::memcpy(a.data(), "abcd", 4);
  copy(a, b);
  CHECK(std::memcmp(b.data(), "abcd", 4) == 0);
  Tensor f = Tensor::empty(Ints{4}, DType::kFloat32);
  CHECK_THROWS_AS(copy(a, f), Error);
}
