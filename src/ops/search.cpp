#include "src/ops/search.h"

#include <algorithm>
#include <bit>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/ops/copy.h"
#include "src/ops/dispatch.h"
#include "src/ops/fill.h"
#include "src/ops/type_promotion.h"

namespace sconce::cpu {
namespace {

constexpr int kLanes = 8;

// Searches a row of n for kLanes values at once, without branches on what is found. Int: int32 where n allows.
// Right: places after equal elements.
template <class Int, bool Right, class T>
void search_lanes(const T* row, const int64_t* sorter, int64_t n, const T* values, Int* places) noexcept {
  Int low[kLanes] = {}, high[kLanes];
  for (Int& h : high) h = static_cast<Int>(n);
  const int steps = std::bit_width(static_cast<uint64_t>(n));
  const auto probe = [&](auto&& element) {
    for (int step = 0; step < steps; ++step)
      for (int l = 0; l < kLanes; ++l) {
        const Int middle = low[l] + ((high[l] - low[l]) >> 1);
        const bool active = low[l] < high[l];
        const auto at = static_cast<ComputeType<T>>(element(active ? middle : Int{0}));
        const auto value = static_cast<ComputeType<T>>(values[l]);
        const bool up = !(Right ? at > value : at >= value);
        const Int next_low = up ? middle + 1 : low[l], next_high = up ? high[l] : middle;
        low[l] = active ? next_low : low[l];
        high[l] = active ? next_high : high[l];
      }
  };
  if (sorter)
    probe([&](Int i) { return row[sorter[i]]; });
  else
    probe([&](Int i) { return row[i]; });
  std::copy_n(low, kLanes, places);
}

struct Search {
  const Tensor& sequence;  // packed [..., n]
  const Tensor& values;    // packed [..., m]
  const int64_t* sorter;
  Tensor& out;

  template <class Int, bool Right, class T>
  void run() const {
    const int64_t n = sequence.size(sequence.dim() - 1);
    const int64_t m = values.dim() == 0 ? 1 : sequence.dim() == 1 ? values.numel() : values.size(values.dim() - 1);
    const T* rows = sequence.data_as<T>();
    const T* in = values.data_as<T>();
    const bool narrow = out.dtype() == DType::kInt32;
    parallel_for(0, values.numel(), 2048, [&](int64_t begin, int64_t end) noexcept {
      T lanes[kLanes];
      Int places[kLanes];
      for (int64_t i = begin; i < end;) {
        const int64_t row = i / m;
        const int64_t count = std::min({int64_t{kLanes}, end - i, (row + 1) * m - i});
        for (int64_t l = 0; l < kLanes; ++l) lanes[l] = in[i + std::min(l, count - 1)];
        search_lanes<Int, Right>(rows + row * n, sorter ? sorter + row * n : nullptr, n, lanes, places);
        for (int64_t l = 0; l < count; ++l) {
          if (narrow)
            out.data_as<int32_t>()[i + l] = static_cast<int32_t>(places[l]);
          else
            out.data_as<int64_t>()[i + l] = places[l];
        }
        i += count;
      }
    });
  }
};

void check_sizes(const Tensor& sequence, const Tensor& values, bool out_int32, const Tensor* sorter) {
  SCONCE_CHECK(sequence.is_cpu() && values.is_cpu(), kUnsupported,
               "searchsorted: tensors on a device need the CUDA side of the runtime");
  SCONCE_CHECK(values.dim() > 0 || sequence.dim() == 1, kInvalidArgument,
               "searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
               "boundaries tensor dim(",
               sequence.dim(), ") and input value's dim(0) numel(1)");
  SCONCE_CHECK(sequence.dim() > 0, kInvalidArgument,
               "searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  bool matched = sequence.dim() == 1;
  if (!matched && sequence.dim() == values.dim()) {
    matched = true;
    for (int64_t d = 0; d + 1 < sequence.dim(); ++d) matched &= sequence.size(d) == values.size(d);
  }
  SCONCE_CHECK(matched, kInvalidArgument,
               "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
               "tensor and input value tensor must match, but we got boundaries tensor ",
               to_string(sequence.sizes()), " and input value tensor ", to_string(values.sizes()));
  const int64_t n = sequence.size(sequence.dim() - 1);
  SCONCE_CHECK(!out_int32 || n < INT32_MAX, kInvalidArgument,
               "searchsorted(): the size of boundaries' last dimension should be less than 2147483647, but we got ", n);
  if (!sorter) return;
  SCONCE_CHECK(to_string(sorter->sizes()) == to_string(sequence.sizes()), kInvalidArgument,
               "searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
               to_string(sequence.sizes()), " and got sorter tensor ", to_string(sorter->sizes()));
  SCONCE_CHECK(sorter->dtype() == DType::kInt64, kInvalidArgument,
               "searchsorted(): sorter must be a tensor of long dtype but got dtype ", dtype_name(sorter->dtype()));
}

bool right_side(bool right, std::optional<std::string_view> side) {
  if (!side) return right;
  SCONCE_CHECK(*side == "left" || *side == "right", kInvalidArgument,
               "searchsorted(): side can only be 'left' or 'right' but got ", *side);
  SCONCE_CHECK(*side == "right" || !right, kInvalidArgument,
               "searchsorted(): side and right can't be set to opposites, got side of left while right was True");
  return *side == "right";
}

Tensor search(const Tensor& sequence, const Tensor& values, DType common, bool out_int32, bool right,
              const Tensor* sorter) {
  Tensor out = Tensor::empty(values.sizes(), out_int32 ? DType::kInt32 : DType::kInt64);
  const Tensor packed_sequence = contiguous(to_dtype(sequence, common));
  const Tensor packed_values = contiguous(to_dtype(values, common));
  const int64_t n = sequence.size(sequence.dim() - 1);
  Tensor packed_sorter;
  if (sorter) {
    packed_sorter = contiguous(*sorter);
    for (int64_t i = 0; i < packed_sorter.numel(); ++i) {
      const int64_t at = packed_sorter.data_as<int64_t>()[i];
      SCONCE_CHECK(at >= 0 && at < n, kInvalidArgument, "searchsorted(): sorter index out of range: ", at, " of ", n);
    }
  }
  dispatch_real(common, "searchsorted", [&]<class T>() {
    if (out.numel() == 0) return;
    const Search job{packed_sequence, packed_values, sorter ? packed_sorter.data_as<int64_t>() : nullptr, out};
    if (n >= INT32_MAX)
      right ? job.run<int64_t, true, T>() : job.run<int64_t, false, T>();
    else
      right ? job.run<int32_t, true, T>() : job.run<int32_t, false, T>();
  });
  return out;
}

}  // namespace

Tensor searchsorted_Tensor(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter) {
  right = right_side(right, side);
  check_sizes(sorted_sequence, self, out_int32, sorter);
  return search(sorted_sequence, self, ResultType().add(sorted_sequence).add(self).get(), out_int32, right, sorter);
}

Tensor searchsorted_Scalar(const Tensor& sorted_sequence, double self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter) {
  right = right_side(right, side);
  Tensor value = Tensor::empty({}, DType::kFloat64);
  fill(value, self);
  check_sizes(sorted_sequence, value, out_int32, sorter);
  return search(sorted_sequence, value, ResultType().add(sorted_sequence).add_number(self).get(), out_int32, right,
                sorter);
}

Tensor bucketize_Tensor(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  SCONCE_CHECK(boundaries.dim() == 1, kInvalidArgument,
               "bucketize: boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  return searchsorted_Tensor(boundaries, self, out_int32, right, std::nullopt, nullptr);
}

}  // namespace sconce::cpu
