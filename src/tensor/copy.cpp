#include "src/tensor/copy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/device/threads.h"
#include "src/tensor/elements/convert.h"
#include "src/tensor/elements/strided_move.h"
#include "src/tensor/strided_loop.h"

namespace sconce {
namespace {

constexpr int64_t kBytesPerThread = 128 << 10;  // below this a second thread costs more than it saves
constexpr int64_t kCopiedChunk = 1024;          // elements converted at a time

bool equal(IntSpan a, IntSpan b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

// Copies a rectangle and converts it: gathers a block that is not packed, converts it, scatters it. Blocks stay in
// cache.
void convert_rectangle(DType from, StridedRows s, DType to, StridedRows d, int64_t inner, int64_t outer) {
  alignas(64) std::byte gathered[kCopiedChunk * 16], converted[kCopiedChunk * 16];
  const auto from_item = static_cast<int64_t>(dtype_bytes(from)), to_item = static_cast<int64_t>(dtype_bytes(to));
  const bool transposed = s.inner != from_item && s.outer == from_item;
  const int64_t width = std::min<int64_t>(inner, transposed ? 64 : kCopiedChunk);
  const int64_t height = std::min(outer, kCopiedChunk / width);
  for (int64_t j = 0; j < outer; j += height) {
    const int64_t rows = std::min(height, outer - j);
    for (int64_t i = 0; i < inner; i += width) {
      const int64_t columns = std::min(width, inner - i);
      const StridedRows from_block{s.data + i * s.inner + j * s.outer, s.inner, s.outer};
      const StridedRows to_block{d.data + i * d.inner + j * d.outer, d.inner, d.outer};
      const StridedRows packed_from{reinterpret_cast<char*>(gathered), from_item, columns * from_item};
      const StridedRows packed_to{reinterpret_cast<char*>(converted), to_item, columns * to_item};
      const bool gather = s.inner != from_item || (rows > 1 && s.outer != columns * from_item);
      const bool scatter = d.inner != to_item || (rows > 1 && d.outer != columns * to_item);
      if (gather) move_rectangle(dtype_bytes(from), from_block, packed_from, columns, rows);
      convert(from, gather ? packed_from.data : from_block.data, to, scatter ? packed_to.data : to_block.data,
              columns * rows);
      if (scatter) move_rectangle(dtype_bytes(to), packed_to, to_block, columns, rows);
    }
  }
}

struct CopyPlan {
  StridedLoop<2> loop;  // destination, source
  DType from, to;

  // Copies the part of the walk where dimension `split` is in [begin, end).
  void run(char* destination, const char* source, int split, int64_t begin, int64_t end) const {
    std::array<int64_t, Tensor::kMaxRank> sizes, at{};
    const int rank = loop.rank;
    std::copy_n(loop.sizes.begin(), rank, sizes.begin());
    char* d = destination;
    char* s = const_cast<char*>(source);
    if (rank > 0) {
      sizes[split] = end - begin;
      d += begin * loop.strides[split][0];
      s += begin * loop.strides[split][1];
    }
    const int64_t item = static_cast<int64_t>(dtype_bytes(from));
    const int64_t inner = rank > 0 ? sizes[0] : 1, outer = rank > 1 ? sizes[1] : 1;
    const int64_t d_inner = rank > 0 ? loop.strides[0][0] : static_cast<int64_t>(dtype_bytes(to));
    const int64_t s_inner = rank > 0 ? loop.strides[0][1] : item;
    const int64_t d_outer = rank > 1 ? loop.strides[1][0] : 0, s_outer = rank > 1 ? loop.strides[1][1] : 0;
    for (;;) {
      const StridedRows from_rows{s, s_inner, s_outer}, to_rows{d, d_inner, d_outer};
      if (from == to)
        move_rectangle(dtype_bytes(from), from_rows, to_rows, inner, outer);
      else
        convert_rectangle(from, from_rows, to, to_rows, inner, outer);
      int k = 2;
      for (; k < rank; ++k) {
        d += loop.strides[k][0];
        s += loop.strides[k][1];
        if (++at[k] < sizes[k]) break;
        d -= sizes[k] * loop.strides[k][0];
        s -= sizes[k] * loop.strides[k][1];
        at[k] = 0;
      }
      if (k >= rank) return;
    }
  }

  // The dimension that threads share. Each thread gets whole stretches of the destination's memory if these are equal
  // parts: cache lines between its own that other threads write would move between the caches repeatedly.
  int shared_dimension(int threads) const {
    constexpr int64_t kPartsEach = 4;
    int widest = 0, outermost = -1;
    for (int d = 0; d < loop.rank; ++d) {
      if (loop.sizes[d] > loop.sizes[widest]) widest = d;
      if (loop.sizes[d] < kPartsEach * threads) continue;
      if (outermost < 0 || std::abs(loop.strides[d][0]) > std::abs(loop.strides[outermost][0])) outermost = d;
    }
    return outermost < 0 ? widest : outermost;
  }

  // Puts the dimension along which the source is packed next to the innermost one, as transposes need.
  void pair_packed_source() {
    const int64_t item = static_cast<int64_t>(dtype_bytes(from));
    if (loop.rank < 3 || loop.strides[0][1] == item) return;
    for (int k = 2; k < loop.rank; ++k)
      if (loop.strides[k][1] == item) {
        std::swap(loop.sizes[1], loop.sizes[k]);
        std::swap(loop.strides[1], loop.strides[k]);
        return;
      }
  }
};

void copy_packed(const Tensor& source, Tensor& destination) {
  const auto* s = static_cast<const char*>(source.data());
  auto* d = static_cast<char*>(destination.data());
  const auto bytes = static_cast<int64_t>(destination.bytes());
  parallel_for(0, bytes, kBytesPerThread, [=](int64_t begin, int64_t end) noexcept {
    std::memcpy(d + begin, s + begin, static_cast<size_t>(end - begin));
  });
}

bool same_view(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() && a.dtype() == b.dtype() && equal(a.sizes(), b.sizes()) &&
         equal(a.strides(), b.strides());
}

}  // namespace

void copy(const Tensor& source, Tensor& destination) {
  if (!source.is_cpu() || !destination.is_cpu()) [[unlikely]]
    return device_backend(source.is_cpu() ? destination.device() : source.device()).copy(source, destination);
  const bool same_sizes = equal(source.sizes(), destination.sizes());
  if (same_sizes && same_view(source, destination)) return;
  check_no_internal_overlap("copy_", destination);
  check_no_partial_overlap("copy_", destination, source);
  const DType from = source.dtype(), to = destination.dtype();
  SCONCE_CHECK(from == to || (from != DType::kFloat4E2M1FNx2 && to != DType::kFloat4E2M1FNx2), kUnsupported,
               "copy_: not implemented from '", dtype_name(from), "' to '", dtype_name(to), "'");

  if (same_sizes && from == to &&
      ((source.is_contiguous() && destination.is_contiguous()) ||
       (equal(source.strides(), destination.strides()) && destination.is_dense()))) {
    if (destination.numel() > 0) copy_packed(source, destination);
    return;
  }
  const Shape strides = broadcast_strides("copy_", source, destination.sizes());
  if (destination.numel() == 0) return;
  CopyPlan plan{StridedLoop<2>(destination.sizes(), {destination.strides(), strides},
                               {destination.itemsize(), source.itemsize()}),
                from, to};
  plan.pair_packed_source();
  const StridedLoop<2>& loop = plan.loop;
  const int split = plan.shared_dimension(kernel_threads());
  const int64_t size = loop.rank == 0 ? 1 : loop.sizes[split];
  auto* d = static_cast<char*>(destination.data());
  const auto* s = static_cast<const char*>(source.data());
  const int64_t bytes_each = std::max<int64_t>(static_cast<int64_t>(destination.bytes()) / size, 1);
  parallel_for(0, size, std::max<int64_t>(kBytesPerThread / bytes_each, 1),
               [&, split](int64_t begin, int64_t end) noexcept { plan.run(d, s, split, begin, end); });
}

Tensor empty_like(const Tensor& tensor, DType dtype) {
  if (tensor.is_dense()) return Tensor::empty_strided(tensor.sizes(), tensor.strides(), dtype, tensor.device());
  return Tensor::empty_strided(tensor.sizes(), dense_strides(tensor.sizes(), tensor.strides()), dtype, tensor.device());
}

Tensor contiguous(const Tensor& tensor) { return tensor.is_contiguous() ? tensor : clone_contiguous(tensor); }

Tensor clone(const Tensor& tensor) {
  Tensor out = empty_like(tensor);
  copy(tensor, out);
  return out;
}

Tensor clone_contiguous(const Tensor& tensor) {
  Tensor out = Tensor::empty(tensor.sizes(), tensor.dtype(), tensor.device());
  copy(tensor, out);
  return out;
}

Tensor clone_preserve_strides(const Tensor& tensor) {
  const Tensor out = Tensor::empty_strided(tensor.sizes(), tensor.strides(), tensor.dtype(), tensor.device());
  return clone_in(tensor, out.storage());
}

Tensor clone_in(const Tensor& tensor, const StoragePtr& memory) {
  Tensor out(memory, tensor.dtype(), tensor.sizes(), tensor.strides(), 0);
  if (out.numel() == 0) return out;
  const size_t bytes = storage_bytes_needed(tensor.sizes(), tensor.strides(), 0, tensor.itemsize());
  if (tensor.is_cpu()) {
    std::memcpy(out.data(), tensor.data(), bytes);
  } else {
    const auto count = static_cast<int64_t>(bytes);
    const int64_t one = 1;
    const auto flat = [&](const Tensor& t) {
      return t.view_as(DType::kUInt8, IntSpan(&count, 1), IntSpan(&one, 1),
                       t.storage_offset() * static_cast<int64_t>(t.itemsize()));
    };
    Tensor to = flat(out);
    copy(flat(tensor), to);
  }
  return out;
}

Tensor to_dtype(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor out = empty_like(tensor, dtype);
  copy(tensor, out);
  return out;
}

}  // namespace sconce
