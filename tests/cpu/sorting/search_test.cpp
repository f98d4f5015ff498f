#include "src/cpu/sorting/search.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

constexpr const char* kFile = "sorting.cases";

}  // namespace

TEST_CASE("searchsorted_Tensor: as PyTorch") { run_kernel(kFile, "searchsorted_Tensor", cpu::searchsorted_Tensor); }

TEST_CASE("searchsorted_Scalar: as PyTorch") { run_kernel(kFile, "searchsorted_Scalar", cpu::searchsorted_Scalar); }

TEST_CASE("bucketize_Tensor: as PyTorch") { run_kernel(kFile, "bucketize_Tensor", cpu::bucketize_Tensor); }

TEST_CASE("searchsorted_Tensor: many values against std::lower_bound and std::upper_bound, one and two threads") {
  const int before = kernel_threads();
  const int64_t count = 5003;
  for (int threads : {1, 2})
    for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kInt16, DType::kFloat16})
      for (int64_t n : {0, 1, 2, 3, 7, 8, 100, 4096, 4097}) {
        set_kernel_threads(threads);
        CAPTURE(dtype_name(dtype));
        CAPTURE(n);
        Tensor row = Tensor::empty({&n, 1}, DType::kInt64), values = Tensor::empty({&count, 1}, DType::kInt64);
        for (int64_t i = 0; i < n; ++i) row.data_as<int64_t>()[i] = i / 5 * 2 - 50;
        for (int64_t i = 0; i < count; ++i)
          values.data_as<int64_t>()[i] = i * 7919 % std::min<int64_t>(n + 9, 1800) - 55;
        const int64_t* begin = row.data_as<int64_t>();
        for (bool right : {false, true})
          for (bool narrow : {false, true}) {
            const Tensor got = to_dtype(cpu::searchsorted_Tensor(to_dtype(row, dtype), to_dtype(values, dtype), narrow,
                                                                 right, std::nullopt, nullptr),
                                        DType::kInt64);
            int64_t wrong = 0;
            for (int64_t i = 0; i < count; ++i) {
              const int64_t value = values.data_as<int64_t>()[i];
              const int64_t* want =
                  right ? std::upper_bound(begin, begin + n, value) : std::lower_bound(begin, begin + n, value);
              wrong += got.data_as<int64_t>()[i] != want - begin;
            }
            CHECK(wrong == 0);
          }
      }
  set_kernel_threads(before);
}
