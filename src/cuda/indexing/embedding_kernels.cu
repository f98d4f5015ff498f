#include <cmath>

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/device_code/warp_sum.cuh"
#include "src/cuda/indexing/embedding_kernels.h"

namespace sconce::cuda {
namespace {

// One thread per column of a bag.
template <class T>
cudaError_t bags(const BagCall& c, cudaStream_t stream) {
  const T* weight = static_cast<const T*>(c.weight);
  const T* scales = static_cast<const T*>(c.scales);
  T* out = static_cast<T*>(c.out);
  grid_loop(c.bags * c.columns, stream, [=] __device__(int64_t i) {
    const int64_t bag = i / c.columns, column = i % c.columns;
    int64_t begin = c.offsets[bag], end = bag + 1 < c.bags ? c.offsets[bag + 1] : c.n;
    if (begin < 0 || end > c.n || begin > end || (bag == 0 && begin != 0)) {
      *c.noted = c.note;
      begin = end = 0;
    }
    Compute<T> sum = 0, most = 0;
    int64_t size = 0, row_of_most = -1;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t row = c.indices[k];
      if (row < 0 || row >= c.rows) {
        *c.noted = c.note;
        continue;
      }
      if (row == c.padding) continue;
      const Compute<T> v = widened(weight[row * c.row_stride + column * c.column_stride]);
      if (c.mode == BagMode::kMax) {
        if (size == 0 || v > most) {
          most = v;
          row_of_most = row;
        }
      } else {
        sum += scales ? v * widened(scales[k]) : v;
      }
      ++size;
    }
    if (c.mode == BagMode::kMax) {
      out[i] = narrowed<T>(most);
      c.taken[i] = row_of_most;
    } else {
      out[i] = narrowed<T>(c.mode == BagMode::kMean && size > 0 ? sum / static_cast<Compute<T>>(size) : sum);
    }
    if (column == 0) c.bag_sizes[bag] = size;
  });
  return cudaGetLastError();
}

template <class T>
struct SumsOf {
  using Type = float;
};
template <>
struct SumsOf<double> {
  using Type = double;
};

template <class T>
cudaError_t bag_gradient(const BagGradient& c, cudaStream_t stream) {
  using Sums = typename SumsOf<T>::Type;
  const T* grad = static_cast<const T*>(c.grad);
  const T* scales = static_cast<const T*>(c.scales);
  Sums* sums = static_cast<Sums*>(c.sums);
  if (c.mode == BagMode::kMax) {
    grid_loop(c.bags * c.columns, stream, [=] __device__(int64_t i) {
      const int64_t row = c.taken[i];
      if (row < 0) return;  // the bag is empty
      if (row >= c.rows)
        *c.noted = c.note;
      else
        atomicAdd(sums + row * c.columns + i % c.columns, static_cast<Sums>(widened(grad[i])));
    });
    return cudaGetLastError();
  }
  if (c.occurrences)
    grid_loop(c.n, stream, [=] __device__(int64_t i) {
      if (c.indices[i] >= 0 && c.indices[i] < c.rows)
        atomicAdd(reinterpret_cast<unsigned long long*>(c.occurrences) + c.indices[i], 1ULL);
    });
  grid_loop(c.n * c.columns, stream, [=] __device__(int64_t i) {
    const int64_t at = i / c.columns, column = i % c.columns, row = c.indices[at], bag = c.bag_of[at];
    if (row < 0 || row >= c.rows || bag < 0 || bag >= c.bags) {
      *c.noted = c.note;
      return;
    }
    if (row == c.padding) return;
    Sums scale = scales ? static_cast<Sums>(widened(scales[at])) : Sums(1);
    if (c.occurrences) scale /= static_cast<Sums>(c.occurrences[row]);
    if (c.mode == BagMode::kMean) scale /= static_cast<Sums>(c.bag_sizes[bag]);
    atomicAdd(sums + row * c.columns + column, static_cast<Sums>(widened(grad[bag * c.columns + column])) * scale);
  });
  return cudaGetLastError();
}

// One warp per index.
template <class T>
cudaError_t scale_gradient(const BagGradient& c, const void* rows, void* target, cudaStream_t stream) {
  const T* grad = static_cast<const T*>(c.grad);
  const T* weight = static_cast<const T*>(rows);
  T* out = static_cast<T*>(target);
  grid_loop(c.n * 32, stream, [=] __device__(int64_t thread) {
    const int64_t i = thread / 32, row = c.indices[i], bag = c.bag_of[i];
    const int lane = static_cast<int>(thread % 32);
    Compute<T> sum = 0;
    if (row < 0 || row >= c.rows || bag < 0 || bag >= c.bags)
      *c.noted = c.note;
    else if (row != c.padding)
      for (int64_t k = lane; k < c.columns; k += 32)
        sum += widened(grad[bag * c.columns + k]) * widened(weight[row * c.columns + k]);
    sum = warp_sum(sum);
    if (lane == 0) out[i] = narrowed<T>(sum);
  });
  return cudaGetLastError();
}

}  // namespace

void launch_bag_of(const int64_t* offsets, int64_t bags, int64_t n, int64_t* bag_of, cudaStream_t stream) {
  grid_loop(n, stream, [=] __device__(int64_t i) {
    int64_t low = 0, high = bags;  // the first bag that begins after i
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (offsets[middle] > i)
        high = middle;
      else
        low = middle + 1;
    }
    bag_of[i] = low - 1;
  });
}

cudaError_t launch_bags(const BagCall& call, cudaStream_t stream) {
  if (call.bags > 0 && call.bag_of) launch_bag_of(call.offsets, call.bags, call.n, call.bag_of, stream);
  SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_FLOATING_CASES(bags, call, stream));
}
cudaError_t launch_bag_gradient(const BagGradient& call, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_FLOATING_CASES(bag_gradient, call, stream));
}
cudaError_t launch_scale_gradient(const BagGradient& call, const void* weight, void* out, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_FLOATING_CASES(scale_gradient, call, weight, out, stream));
}

}  // namespace sconce::cuda
