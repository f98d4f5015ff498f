// Matches aten::repeat_interleave.Tensor (torch 2.15, CPU).
#include <algorithm>

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce::cpu {

// repeats[i] times the number i, for each i: 1-D, of the dtype of repeats (an integer type). output_size, if given,
// must be the sum of repeats.
Tensor repeat_interleave_Tensor(const Tensor& repeats, std::optional<int64_t> output_size) {
  SCONCE_CHECK(repeats.dim() == 1, kInvalidArgument, "repeat_interleave only accept 1D vector as repeat, got ",
               describe(repeats));
  const int64_t n = repeats.numel();
  if (n == 0) return Tensor::empty(repeats.sizes(), repeats.dtype());
  const Tensor packed = contiguous(repeats);
  return dispatch_integral(repeats.dtype(), "repeat_interleave", [&]<class T>() {
    const T* counts = packed.data_as<T>();
    int64_t total = 0;
    for (int64_t i = 0; i < n; ++i) {
      SCONCE_CHECK(counts[i] >= 0, kInvalidArgument, "repeats can not be negative: ", +counts[i]);
      SCONCE_CHECK(!__builtin_add_overflow(total, counts[i], &total), kInvalidArgument,
                   "repeat_interleave: the sum of repeats overflows");
    }
    SCONCE_CHECK(!output_size || *output_size == total, kInvalidArgument,
                 "repeat_interleave: allocated size does not match required size: ", output_size.value_or(0),
                 ", repeats sum to ", total);
    Tensor out = Tensor::empty({&total, 1}, repeats.dtype());
    T* to = out.data_as<T>();
    for (int64_t i = 0; i < n; ++i) {
      std::fill_n(to, counts[i], static_cast<T>(i));
      to += counts[i];
    }
    return out;
  });
}

}  // namespace sconce::cpu
