#include "src/cpu/pooling/picked_row.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "src/cpu/pooling/resample.h"
#include "src/operators/cpu_ops.h"

using namespace sconce;

TEST_CASE("upsample_nearest1d: rows of every length around a vector's, elements of every size") {
  for (const DType dtype : {DType::kUInt8, DType::kBFloat16, DType::kFloat32, DType::kFloat64})
    for (const int64_t from : {1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33})
      for (const int64_t to : {1, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 99}) {
        CAPTURE(dtype_name(dtype));
        CAPTURE(from);
        CAPTURE(to);
        const std::vector<int64_t> sizes{1, 2, from};
        const Tensor in = Tensor::empty(sizes, dtype);
        const auto item = static_cast<int64_t>(in.itemsize());
        auto* const bytes = static_cast<unsigned char*>(in.data());
        for (int64_t i = 0; i < 2 * from * item; ++i) bytes[i] = static_cast<unsigned char>(i * 37 + 11);
        const Tensor out = cpu::upsample_nearest1d(in, std::vector<int64_t>{to}, std::nullopt);
        const auto* const made = static_cast<const unsigned char*>(out.data());
        const float step = static_cast<float>(from) / static_cast<float>(to);
        for (int64_t row = 0; row < 2; ++row)
          for (int64_t o = 0; o < to; ++o) {
            const int64_t at = std::min(static_cast<int64_t>(static_cast<float>(o) * step), from - 1);
            CHECK(std::equal(made + (row * to + o) * item, made + (row * to + o + 1) * item,
                             bytes + (row * from + at) * item));
          }
      }
}
