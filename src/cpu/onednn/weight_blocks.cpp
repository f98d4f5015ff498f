#include "src/cpu/onednn/weight_blocks.h"

#include <algorithm>

#include "src/cpu/vector/transpose_runs.h"
#include "src/device/threads.h"

namespace sconce::onednn {
namespace {

constexpr int64_t kElementsPerThread = 16384;  // fewer are not worth a thread

// The dimensions of the kernel as one: their elements, and the stride of the last one. False where the others do not
// follow from it.
bool join_taps(const dnnl_memory_desc_t& d, int64_t& taps, int64_t& stride) {
  taps = 1;
  stride = 0;
  for (int i = d.ndims - 1; i >= 2; --i) {
    if (d.dims[i] == 1) continue;
    const int64_t here = d.format_desc.blocking.strides[i];
    if (taps == 1) stride = here;
    if (here != taps * stride) return false;
    taps *= d.dims[i];
  }
  return true;
}

}  // namespace

WeightBlocks::WeightBlocks(const dnnl::memory::desc& from_desc, const dnnl::memory::desc& to_desc) {
  const dnnl_memory_desc_t &from = from_desc.data, &to = to_desc.data;
  const auto &plain = from.format_desc.blocking, &blocked = to.format_desc.blocking;
  if (from.format_kind != dnnl_blocked || to.format_kind != dnnl_blocked || from.data_type != to.data_type ||
      from.ndims != to.ndims || from.ndims < 2 || plain.inner_nblks != 0 || to.extra.flags != 0 || from.offset0 != 0 ||
      to.offset0 != 0)
    return;
  const int64_t unit = to.data_type == dnnl_f32 ? 1 : to.data_type == dnnl_bf16 ? 2 : 0;  // elements
  if (unit == 0 || blocked.inner_nblks != unit || blocked.inner_idxs[0] != 0 || blocked.inner_blks[0] % 8 != 0) return;
  if (unit == 2 && (blocked.inner_idxs[1] != 1 || blocked.inner_blks[1] != 2)) return;
  const int64_t in = from.dims[1];
  if (in % unit != 0 || to.padded_dims[1] != in) return;
  int64_t taps, from_tap, to_taps, to_tap;
  if (!join_taps(from, taps, from_tap) || !join_taps(to, to_taps, to_tap)) return;
  const auto whole = [&](int64_t stride) { return stride % unit == 0; };
  if (!whole(plain.strides[0]) || !whole(blocked.strides[0]) || !whole(blocked.strides[1]) || !whole(to_tap)) return;
  out_ = from.dims[0];
  block_ = blocked.inner_blks[0];
  from_out_ = plain.strides[0] / unit;
  to_block_ = blocked.strides[0] / unit;
  to_row_ = blocked.strides[1] / unit;
  to_tap /= unit;
  if ((plain.strides[1] == 1 || in == 1) && whole(from_tap)) {  // channels last, or a single tap
    rows_ = in / unit;
    runs_ = taps;
    from_run_ = from_tap / unit;
    to_run_ = to_tap;
  } else if (unit == 1 && (from_tap == 1 || taps == 1) && plain.strides[1] == taps) {
    rows_ = in * taps;
    taps_ = taps;
    to_tap_ = to_tap;
    runs_ = 1;
  } else {
    return;
  }
  usable_ = true;
}

void WeightBlocks::order(const void* from, void* to) const noexcept {
  const int64_t blocks = (out_ + block_ - 1) / block_;
  const int64_t grain = std::max<int64_t>(1, kElementsPerThread / (block_ * rows_));
  parallel_for(0, blocks * runs_, grain, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / runs_, run = i % runs_, first = block * block_;
      transpose_runs({static_cast<const float*>(from) + first * from_out_ + run * from_run_, from_out_,
                      std::min(block_, out_ - first), rows_, taps_,
                      static_cast<float*>(to) + block * to_block_ + run * to_run_, to_tap_, to_row_, block_});
    }
  });
}

}  // namespace sconce::onednn
