#include "src/weights/row_major.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace sconce::weights {
namespace {

template <size_t kBytes>
void copy_run(const std::byte* from, int64_t stride_bytes, std::byte* to, int64_t count) noexcept {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * int64_t{kBytes}, from + i * stride_bytes, kBytes);
}

void copy_run(const std::byte* from, int64_t stride, std::byte* to, int64_t count, size_t itemsize) noexcept {
  const auto item = static_cast<int64_t>(itemsize);
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count * item));
    return;
  }
  switch (itemsize) {
    case 1:
      return copy_run<1>(from, stride * item, to, count);
    case 2:
      return copy_run<2>(from, stride * item, to, count);
    case 4:
      return copy_run<4>(from, stride * item, to, count);
    case 8:
      return copy_run<8>(from, stride * item, to, count);
    default:
      return copy_run<16>(from, stride * item, to, count);
  }
}

}  // namespace

bool is_row_major(IntSpan sizes, IntSpan strides) noexcept {
  int64_t expected = 1;
  bool same = true;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 0) return true;
    if (sizes[d] == 1) continue;
    same &= strides[d] == expected;
    if (__builtin_mul_overflow(expected, sizes[d], &expected)) return false;
  }
  return same;
}

void gather(const std::byte* first, IntSpan sizes, IntSpan strides, size_t itemsize, uint64_t begin,
            std::span<std::byte> out) noexcept {
  if (out.empty()) return;
  const auto item = static_cast<int64_t>(itemsize);
  if (sizes.empty()) {
    std::memcpy(out.data(), first, itemsize);
    return;
  }
  const size_t rank = sizes.size(), last = rank - 1;
  std::array<int64_t, Tensor::kMaxRank> index;
  for (size_t d = rank; d-- > 0;) {
    index[d] = static_cast<int64_t>(begin % static_cast<uint64_t>(sizes[d]));
    begin /= static_cast<uint64_t>(sizes[d]);
  }
  auto left = static_cast<int64_t>(out.size() / itemsize);
  std::byte* to = out.data();
  for (;;) {
    int64_t offset = 0;
    for (size_t d = 0; d < rank; ++d) offset += index[d] * strides[d];
    const int64_t count = std::min(sizes[last] - index[last], left);
    copy_run(first + offset * item, strides[last], to, count, itemsize);
    left -= count;
    if (left == 0) return;
    to += count * item;
    index[last] = 0;
    for (size_t d = last; d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace sconce::weights
