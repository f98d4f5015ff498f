#include <atomic>

#include "sconce/check.h"
#include "src/cpu/indexing/index.h"
#include "src/cpu/indexing/masked.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/block_copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rules/index_plan.h"

namespace sconce::cpu {
namespace {

constexpr int64_t kChunk = 512;
constexpr int64_t kBytesPerThread = 64 << 10;

struct Assign {
  template <class E>
  static void apply(char* to, const char* from) noexcept {
    store_unaligned(to, load_unaligned<E>(from));
  }
  template <class E>
  static void apply_block(char* to, const char* from, int64_t n) noexcept {
    copy_block(from, to, n * static_cast<int64_t>(sizeof(E)));
  }
};

// Each sum is rounded to the element type at once, as ATen's is.
struct Accumulate {
  template <class T>
  static T sum(T a, T b) noexcept {
    if constexpr (std::is_same_v<T, bool>)
      return a || b;
    else if constexpr (kIsSmallFloat<T>)
      return T(static_cast<float>(a) + static_cast<float>(b));
    else if constexpr (std::is_same_v<T, ComplexHalf>)
      return ComplexHalf(ComplexFloat(a) + ComplexFloat(b));
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  }
  template <class T>
  static void apply(char* to, const char* from) noexcept {
    *reinterpret_cast<T*>(to) = sum(*reinterpret_cast<T*>(to), *reinterpret_cast<const T*>(from));
  }
  template <class T>
  static void apply_block(char* to, const char* from, int64_t n) noexcept {
    auto* __restrict t = reinterpret_cast<T*>(to);
    const auto* __restrict f = reinterpret_cast<const T*>(from);
    for (int64_t i = 0; i < n; ++i) t[i] = sum(t[i], f[i]);
  }
};

// Positions whose offset in self lies in [low, low + span) are written, in sequence; elements [rest_begin, rest_end) of
// each. Returns the number of a bad index, or -1.
template <class Op, class E>
int put(const IndexPlan& plan, const char* values, int64_t low, int64_t span, int64_t rest_begin, int64_t rest_end) {
  int64_t to[kChunk], from[kChunk];
  char* const self = plan.self_data();
  const bool all = low == 0 && span >= plan.offset_limit();
  for (int64_t at = 0; at < plan.positions(); at += kChunk) {
    int64_t m = std::min(kChunk, plan.positions() - at);
    if (const int bad = plan.offsets(at, at + m, to, from); bad >= 0) return bad;
    if (!all) {
      int64_t kept = 0;
      for (int64_t i = 0; i < m; ++i) {
        to[kept] = to[i];
        from[kept] = from[i];
        kept += static_cast<uint64_t>(to[i] - low) < static_cast<uint64_t>(span);
      }
      m = kept;
    }
    plan.rest().run({const_cast<char*>(values), self}, rest_begin, rest_end,
                    [&](char* const* p, const int64_t* stride, int64_t n) {
                      constexpr int64_t kItem = sizeof(E);
                      if (n == 1) {
                        for (int64_t i = 0; i < m; ++i) Op::template apply<E>(p[1] + to[i], p[0] + from[i]);
                      } else if (stride[0] == kItem && stride[1] == kItem) {
                        for (int64_t i = 0; i < m; ++i) Op::template apply_block<E>(p[1] + to[i], p[0] + from[i], n);
                      } else {
                        for (int64_t i = 0; i < m; ++i)
                          for (int64_t j = 0; j < n; ++j)
                            Op::template apply<E>(p[1] + to[i] + j * stride[1], p[0] + from[i] + j * stride[0]);
                      }
                    });
  }
  return -1;
}

template <class Op, class E>
int put_parallel(const IndexPlan& plan, const char* values) {
  const int64_t rest = plan.rest().numel, positions = plan.positions(), limit = plan.offset_limit();
  std::atomic<int> bad{-1};
  const auto note = [&](int number) {
    if (number >= 0) bad = number;
  };
  if (rest >= 64) {
    // Threads take different elements of every position, so that duplicates keep their order.
    const int64_t bytes_each = positions * static_cast<int64_t>(sizeof(E)) + 1;
    parallel_for(0, rest, std::max<int64_t>(kBytesPerThread / bytes_each, 16),
                 [&](int64_t begin, int64_t end) noexcept { note(put<Op, E>(plan, values, 0, limit, begin, end)); });
  } else {
    // Threads take different parts of self.
    const int64_t work = positions * (rest * static_cast<int64_t>(sizeof(E)) + 16);
    const int64_t parts = std::clamp<int64_t>(work / kBytesPerThread, 1, kernel_threads());
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) noexcept {
      const int64_t low = limit * begin / parts, high = limit * end / parts;
      note(put<Op, E>(plan, values, low, high - low, 0, rest));
    });
  }
  return bad;
}

bool shares_storage(const Tensor& a, const Tensor& b) { return a.storage() == b.storage(); }

// index_put where one mask selects and one value is written: no positions are needed.
bool fill_by_mask(Tensor& self, std::span<const Tensor* const> indices, const Tensor& values) {
  if (values.numel() != 1) return false;
  const Tensor* mask = nullptr;
  int64_t before = 0;
  for (const Tensor* index : indices) {
    if (!index) {
      before += mask == nullptr;
    } else if (!mask && (index->dtype() == DType::kBool || index->dtype() == DType::kUInt8)) {
      mask = index;
    } else {
      return false;
    }
  }
  if (!mask || before + mask->dim() > self.dim()) return false;
  Shape strides;
  strides.resize(static_cast<int>(self.dim()));
  for (int64_t d = 0; d < self.dim(); ++d) strides[static_cast<int>(d)] = 0;
  for (int64_t d = 0; d < mask->dim(); ++d) {
    if (mask->size(d) != self.size(before + d)) return false;
    strides[static_cast<int>(before + d)] = mask->stride(d);
  }
  fill_where(self, mask->as_strided(self.sizes(), strides, mask->storage_offset()), values.data());
  return true;
}

void put_into(Tensor& self, std::span<const Tensor* const> indices, const Tensor& given, bool accumulate) {
  SCONCE_CHECK(self.dtype() == given.dtype(), kInvalidArgument,
               "Index put requires the source and destination dtypes match, got ", dtype_name(self.dtype()),
               " for the destination and ", dtype_name(given.dtype()), " for the source.");
  if (!accumulate && fill_by_mask(self, indices, given)) return;
  IndexPlan plan(self, indices, nonzero);
  const IntSpan shape = plan.result_sizes();
  bool fits = static_cast<size_t>(given.dim()) <= shape.size();
  for (int64_t d = 1; fits && d <= given.dim(); ++d) {
    const int64_t size = given.size(given.dim() - d);
    fits = size == 1 || size == shape[shape.size() - static_cast<size_t>(d)];
  }
  SCONCE_CHECK(fits, kInvalidArgument, "shape mismatch: value tensor of shape ", to_string(given.sizes()),
               " cannot be broadcast to indexing result of shape ", to_string(shape));
  const Tensor values = shares_storage(self, given) ? clone(given) : given;
  plan.order_by(broadcast_strides("index_put", values, shape), values.itemsize());
  const auto* data = static_cast<const char*>(values.data());
  int bad = -1;
  if (accumulate)
    dispatch_all(self.dtype(), "index_put", [&]<class T>() { bad = put_parallel<Accumulate, T>(plan, data); });
  else
    dispatch_bytes(self.itemsize(), [&]<class E>() { bad = put_parallel<Assign, E>(plan, data); });
  if (bad >= 0) plan.fail_out_of_bounds(bad);
}

}  // namespace

void index_put_out(Tensor& out, const Tensor& self, std::span<const Tensor* const> indices, const Tensor& values,
                   bool accumulate) {
  // If indices share memory with the output, they are copied first.
  std::array<Tensor, Tensor::kMaxRank> kept;
  std::array<const Tensor*, Tensor::kMaxRank> safe;
  SCONCE_CHECK(indices.size() <= safe.size(), kInvalidArgument, "index_put: too many indices: ", indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    safe[i] = indices[i];
    if (indices[i] && shares_storage(out, *indices[i])) safe[i] = &(kept[i] = clone(*indices[i]));
  }
  const Tensor own_values = shares_storage(out, values) ? clone(values) : values;
  if (&out != &self) {
    SCONCE_CHECK(out.dtype() == self.dtype() && to_string(out.sizes()) == to_string(self.sizes()), kInvalidArgument,
                 "index_put: out is ", describe(out), ", self ", describe(self));
    copy(self, out);
  }
  put_into(out, {safe.data(), indices.size()}, own_values, accumulate);
}

// A clone of self in which self[indices] = values, or += where accumulate. values broadcast and have self's dtype.
// Of duplicate positions the last in memory order wins, as in ATen on one thread, whatever the number of threads.
Tensor index_put(const Tensor& self, OptTensorList indices, const Tensor& values, bool accumulate) {
  Tensor out = clone(self);
  const IndexList list(indices);
  put_into(out, list, values, accumulate);
  return out;
}

}  // namespace sconce::cpu
