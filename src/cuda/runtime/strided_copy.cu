#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/element_sizes.cuh"
#include "src/cuda/device_code/elements.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/runtime/strided_copy.h"

namespace sconce::cuda {
namespace {

struct CopyWalk {
  explicit CopyWalk(const CopyShape& given) : shape(given) {
    for (int d = 0; d < given.rank; ++d) sizes[d] = Divider(given.sizes[d]);
  }
  __device__ void offsets(int64_t index, int64_t& to, int64_t& from) const {
    to = from = 0;
    for (int d = 0; d < shape.rank; ++d) {
      const int64_t at = d + 1 < shape.rank ? sizes[d].take(index) : index;
      to += at * shape.to[d];
      from += at * shape.from[d];
    }
  }

  CopyShape shape;
  Divider sizes[kMaxCopyRank];
};

// Returns how many bytes to move at once: up to 16 if elements are adjacent on both sides and everything is aligned to
// that, else itemsize. Rewrites the shape in units of that size.
int widened_item(CopyShape& shape, uintptr_t to, uintptr_t from, int itemsize) {
  if (shape.rank == 0 || shape.to[0] != itemsize || shape.from[0] != itemsize) return itemsize;
  int64_t all = static_cast<int64_t>(to | from) | shape.sizes[0] * itemsize;
  for (int d = 1; d < shape.rank; ++d) all |= shape.to[d] | shape.from[d];
  int wide = 16;
  while (wide > itemsize && all % wide != 0) wide /= 2;
  const int64_t each = wide / itemsize;
  shape.sizes[0] /= each;
  shape.numel /= each;
  shape.to[0] = shape.from[0] = wide;
  return wide;
}

// Calls body(to, from) on the device with the byte offsets of every element.
template <class F>
void for_offsets(const CopyShape& shape, cudaStream_t stream, F body) {
  const CopyWalk walk(shape);
  grid_loop(shape.numel, stream, [=] __device__(int64_t i) {
    int64_t t, f;
    walk.offsets(i, t, f);
    body(t, f);
  });
}

template <class T>
void move(const CopyShape& shape, char* to, const char* from, cudaStream_t stream) {
  for_offsets(shape, stream, [=] __device__(int64_t t, int64_t f) {
    *reinterpret_cast<T*>(to + t) = *reinterpret_cast<const T*>(from + f);
  });
}
template <class T>
void fill_as(const CopyShape& shape, char* to, T value, cudaStream_t stream) {
  for_offsets(shape, stream, [=] __device__(int64_t t, int64_t) { *reinterpret_cast<T*>(to + t) = value; });
}

// For copies whose innermost dimension differs between the sides (a transposition): goes through a square of shared
// memory, so that both sides are accessed in rows.
constexpr int kSquare = 32, kSquareRows = 8;
struct TurnedWalk {
  CopyWalk walk;          // over the other dimensions
  int64_t rows, columns;  // contiguous in `to` and in `from`
  int64_t row_from, column_to;
  Divider squares_across, squares;
};
template <class T>
__global__ void __launch_bounds__(kSquare* kSquareRows) turn_kernel(TurnedWalk turn, char* to, const char* from) {
  __shared__ T square[kSquare][kSquare + 1];
  int64_t plane = blockIdx.x, t, f;
  int64_t within = turn.squares.take(plane);
  turn.walk.offsets(plane, t, f);
  const int64_t across = turn.squares_across.take(within) * kSquare, down = within * kSquare;
  const T* source = reinterpret_cast<const T*>(from + f);
  for (int y = threadIdx.y; y < kSquare; y += kSquareRows) {
    const int64_t column = across + threadIdx.x, row = down + y;
    if (row < turn.rows && column < turn.columns)
      square[y][threadIdx.x] =
          *reinterpret_cast<const T*>(reinterpret_cast<const char*>(source + column) + row * turn.row_from);
  }
  __syncthreads();
  T* target = reinterpret_cast<T*>(to + t);
  for (int y = threadIdx.y; y < kSquare; y += kSquareRows) {
    const int64_t row = down + threadIdx.x, column = across + y;
    if (row < turn.rows && column < turn.columns)
      *reinterpret_cast<T*>(reinterpret_cast<char*>(target + row) + column * turn.column_to) = square[threadIdx.x][y];
  }
}

template <class T>
bool turned(const CopyShape& shape, char* to, const char* from, cudaStream_t stream) {
  constexpr int64_t kItem = sizeof(T), kLeast = 8;
  if (shape.rank < 2 || shape.to[0] != kItem || shape.from[0] == kItem || shape.sizes[0] < kLeast) return false;
  int other = 1;
  while (other < shape.rank && shape.from[other] != kItem) ++other;
  if (other == shape.rank || shape.sizes[other] < kLeast) return false;
  CopyShape rest;
  for (int d = 1; d < shape.rank; ++d) {
    if (d == other) continue;
    rest.sizes[rest.rank] = shape.sizes[d];
    rest.to[rest.rank] = shape.to[d];
    rest.from[rest.rank++] = shape.from[d];
    rest.numel *= shape.sizes[d];
  }
  const int64_t across = (shape.sizes[other] + kSquare - 1) / kSquare, down = (shape.sizes[0] + kSquare - 1) / kSquare;
  const int64_t blocks = across * down * rest.numel;
  if (blocks > INT32_MAX) return false;
  const TurnedWalk turn{CopyWalk(rest),  shape.sizes[0],  shape.sizes[other],    shape.from[0],
                        shape.to[other], Divider(across), Divider(across * down)};
  turn_kernel<T><<<static_cast<unsigned>(blocks), dim3(kSquare, kSquareRows), 0, stream>>>(turn, to, from);
  return true;
}

}  // namespace

void launch_copy(const CopyShape& shape, void* to, int to_dtype, const void* from, int from_dtype,
                 cudaStream_t stream) {
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  for_offsets(shape, stream,
              [=] __device__(int64_t t, int64_t f) { store(target + t, to_dtype, load(source + f, from_dtype)); });
}

void launch_move(const CopyShape& shape, void* to, const void* from, int itemsize, cudaStream_t stream) {
  CopyShape wide = shape;
  const int item = widened_item(wide, reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from), itemsize);
  by_width(item, item > itemsize, [&](auto sample) {
    using T = decltype(sample);
    auto* target = static_cast<char*>(to);
    const auto* source = static_cast<const char*>(from);
    if (turned<T>(wide, target, source, stream)) return;
    move<T>(wide, target, source, stream);
  });
}

void launch_fill(const CopyShape& shape, void* to, const void* element, int itemsize, cudaStream_t stream) {
  CopyShape wide = shape;
  for (int d = 0; d < wide.rank; ++d) wide.from[d] = wide.to[d];
  const int item = widened_item(wide, reinterpret_cast<uintptr_t>(to), 0, itemsize);
  by_width(item, item > itemsize, [&](auto sample) {
    for (int at = 0; at < item; at += itemsize)
      __builtin_memcpy(reinterpret_cast<char*>(&sample) + at, element, static_cast<size_t>(itemsize));
    fill_as(wide, static_cast<char*>(to), sample, stream);
  });
}

}  // namespace sconce::cuda
