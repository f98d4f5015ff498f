#include "src/cpu/sorting/search.h"

#include <algorithm>

#include "sconce/check.h"
#include "src/cpu/sorting/search_lanes.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rules/sorting.h"
#include "src/tensor/type_promotion.h"

namespace sconce::cpu {
namespace {

// Values of one row of the sequence, to int64 or int32 places.
struct Search {
  const Tensor& sequence;  // packed [..., n]
  const Tensor& values;    // packed [..., m]
  const int64_t* sorter;
  bool right;
  Tensor& out;

  template <class T>
  void run() const {
    const int64_t n = sequence.size(sequence.dim() - 1);
    const int64_t m = sequence.dim() == 1 ? values.numel() : values.size(values.dim() - 1);
    parallel_for(0, values.numel(), 2048, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end;) {
        const int64_t row = i / m, count = std::min(end, (row + 1) * m) - i;
        run_row(sequence.data_as<T>() + row * n, n, values.data_as<T>() + i, i, count, row);
        i += count;
      }
    });
  }

 private:
  template <class T>
  void run_row(const T* elements, int64_t n, const T* in, int64_t at, int64_t count, int64_t row) const noexcept {
    constexpr int64_t kBlock = 512;
    int32_t places[kBlock];
    const bool narrow = out.dtype() == DType::kInt32;
    if (sorter || n >= INT32_MAX) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t place = search_value(elements, sorter ? sorter + row * n : nullptr, n, in[i], right);
        narrow ? out.data_as<int32_t>()[at + i] = static_cast<int32_t>(place) : out.data_as<int64_t>()[at + i] = place;
      }
      return;
    }
    if (narrow) return search_values(elements, n, in, count, right, out.data_as<int32_t>() + at);
    for (int64_t i = 0; i < count; i += kBlock) {
      const int64_t block = std::min(kBlock, count - i);
      search_values(elements, n, in + i, block, right, places);
      std::copy_n(places, block, out.data_as<int64_t>() + at + i);
    }
  }
};

void check(const Tensor& sequence, const Tensor& values, bool out_int32, const Tensor* sorter) {
  SCONCE_CHECK(sequence.is_cpu() && values.is_cpu(), kUnsupported,
               "searchsorted: tensors on a device need the CUDA side of the runtime");
  check_searched(sequence, values, out_int32, sorter);
}

Tensor search(const Tensor& sequence, const Tensor& values, DType common, bool out_int32, bool right,
              const Tensor* sorter) {
  Tensor out = Tensor::empty(values.sizes(), out_int32 ? DType::kInt32 : DType::kInt64);
  // Values are rounded to the common dtype first, then widened.
  const DType wide = searched_dtype(common);
  const Tensor packed_sequence = contiguous(to_dtype(to_dtype(sequence, common), wide));
  const Tensor packed_values = contiguous(to_dtype(to_dtype(values, common), wide));
  const int64_t n = sequence.size(sequence.dim() - 1);
  Tensor packed_sorter;
  if (sorter) {
    packed_sorter = contiguous(*sorter);
    for (int64_t i = 0; i < packed_sorter.numel(); ++i) {
      const int64_t at = packed_sorter.data_as<int64_t>()[i];
      SCONCE_CHECK(at >= 0 && at < n, kInvalidArgument, "searchsorted(): sorter index out of range: ", at, " of ", n);
    }
  }
  detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32,
                        DType::kFloat64>(wide, "searchsorted", [&]<class T>() {
    if (out.numel() == 0) return;
    Search{packed_sequence, packed_values, sorter ? packed_sorter.data_as<int64_t>() : nullptr, right, out}.run<T>();
  });
  return out;
}

}  // namespace

// sorted_sequence [..., n] or [n], self [..., m]: for each value its place in the sequence, int64 or int32, row-major.
// side "left" (or right=false): the first place; "right": after the last equal. sorter: int64, of sorted_sequence's
// sizes, positions that sort it. Different dtypes are promoted.
Tensor searchsorted_Tensor(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter) {
  right = right_side(right, side);
  check(sorted_sequence, self, out_int32, sorter);
  return search(sorted_sequence, self, ResultType().add(sorted_sequence).add(self).get(), out_int32, right, sorter);
}

Tensor searchsorted_Scalar(const Tensor& sorted_sequence, double self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter) {
  return searchsorted_number(sorted_sequence, self, out_int32, right, side, sorter);
}

Tensor searchsorted_number(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter) {
  right = right_side(right, side);
  const Tensor value = number_tensor(self);
  check(sorted_sequence, value, out_int32, sorter);
  return search(sorted_sequence, value, ResultType().add(sorted_sequence).add_number(self).get(), out_int32, right,
                sorter);
}

// boundaries: [n].
Tensor bucketize_Tensor(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  check_boundaries(boundaries);
  return searchsorted_Tensor(boundaries, self, out_int32, right, std::nullopt, nullptr);
}

}  // namespace sconce::cpu
