#include "src/cpu/indexing/index.h"

#include <atomic>

#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/elements/block_copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rules/index_plan.h"

namespace sconce::cpu {
namespace {

constexpr int64_t kChunk = 512;                // positions whose offsets are computed at a time
constexpr int64_t kBytesPerThread = 64 << 10;  // read and written

// Copies positions [begin, end), elements [rest_begin, rest_end) of each. Returns the number of a bad index, or -1.
template <class E>
int gather(const IndexPlan& plan, char* out, int64_t begin, int64_t end, int64_t rest_begin, int64_t rest_end) {
  int64_t from[kChunk], to[kChunk];
  char* const self = plan.self_data();
  for (int64_t at = begin; at < end; at += kChunk) {
    const int64_t m = std::min(kChunk, end - at);
    if (const int bad = plan.offsets(at, at + m, from, to); bad >= 0) return bad;
    plan.rest().run({out, self}, rest_begin, rest_end, [&](char* const* p, const int64_t* stride, int64_t n) {
      constexpr int64_t kItem = sizeof(E);
      if (n == 1) {
        for (int64_t i = 0; i < m; ++i) store_unaligned(p[0] + to[i], load_unaligned<E>(p[1] + from[i]));
      } else if (stride[0] == kItem && stride[1] == kItem) {
        for (int64_t i = 0; i < m; ++i) copy_block(p[1] + from[i], p[0] + to[i], n * kItem);
      } else {
        for (int64_t j = 0; j < n; ++j)
          for (int64_t i = 0; i < m; ++i)
            store_unaligned(p[0] + j * stride[0] + to[i], load_unaligned<E>(p[1] + j * stride[1] + from[i]));
      }
    });
  }
  return -1;
}

}  // namespace

// self[indices]; null or missing indices take their dimension whole. Strides as at::TensorIterator gives them.
Tensor index_Tensor(const Tensor& self, OptTensorList indices) {
  IndexPlan plan(self, IndexList(indices), nonzero);
  Tensor out = Tensor::empty_strided(plan.result_sizes(), plan.result_strides(), self.dtype());
  plan.order_by(out.strides(), out.itemsize());
  if (out.numel() == 0) {
    // Indices are checked even if no element is read.
    int64_t from[kChunk], to[kChunk];
    for (int64_t at = 0; at < plan.positions(); at += kChunk)
      if (const int bad = plan.offsets(at, std::min(at + kChunk, plan.positions()), from, to); bad >= 0)
        plan.fail_out_of_bounds(bad);
    return out;
  }
  auto* data = static_cast<char*>(out.data());
  const int64_t positions = plan.positions(), rest = plan.rest().numel;
  std::atomic<int> bad{-1};
  dispatch_bytes(out.itemsize(), [&]<class E>() {
    if (positions >= rest || positions >= 64) {
      const int64_t bytes_each = rest * static_cast<int64_t>(sizeof(E)) + 16;
      parallel_for(0, positions, std::max<int64_t>(kBytesPerThread / bytes_each, 1),
                   [&](int64_t begin, int64_t end) noexcept {
                     if (const int b = gather<E>(plan, data, begin, end, 0, rest); b >= 0) bad = b;
                   });
    } else {
      const int64_t bytes_each = positions * static_cast<int64_t>(sizeof(E));
      parallel_for(0, rest, std::max<int64_t>(kBytesPerThread / bytes_each, 1),
                   [&](int64_t begin, int64_t end) noexcept {
                     if (const int b = gather<E>(plan, data, 0, positions, begin, end); b >= 0) bad = b;
                   });
    }
  });
  if (bad >= 0) plan.fail_out_of_bounds(bad);
  return out;
}

}  // namespace sconce::cpu
