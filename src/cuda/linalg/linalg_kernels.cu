#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/linalg/linalg_kernels.h"
#include "src/cuda/linalg/small_numbers.cuh"

namespace sconce::cuda {
namespace {

template <class T>
void conjugate_as(void* numbers, int64_t count, cudaStream_t stream) {
  T* data = static_cast<T*>(numbers);
  grid_loop(count, stream, [=] __device__(int64_t i) { data[i] = conjugated(data[i]); });
}

template <class T>
void part_as(const Part& part, void* to_data, const void* from_data, cudaStream_t stream) {
  const Part p = part;
  T* to = static_cast<T*>(to_data);
  const T* from = static_cast<const T*>(from_data);
  const Divider by_rows(p.rows), by_columns(p.columns);
  grid_loop(p.count * p.rows * p.columns, stream, [=] __device__(int64_t i) {
    int64_t matrix = i;
    const int64_t row = by_rows.take(matrix), column = by_columns.take(matrix);
    const T* source = from + matrix * p.from_matrix + row * p.from_row + column * p.from_column;
    T value(0);
    if (p.kind == Part::kUnitLower && row == column)
      value = T(1);
    else if (p.kind == Part::kAll || (p.kind == Part::kUpper ? row <= column : row > column) ||
             (p.kind == Part::kLower && row == column))
      value = *source;
    to[matrix * p.to_matrix + row * p.to_row + column * p.to_column] = value;
  });
}

template <class T>
void exchange_as(void* matrices, int64_t count, int64_t rows, int64_t columns, const int32_t* pivots,
                 int64_t pivot_count, bool backwards, cudaStream_t stream) {
  T* data = static_cast<T*>(matrices);
  grid_loop(count * columns, stream, [=] __device__(int64_t i) {
    T* column = data + i * rows;
    const int32_t* exchange = pivots + i / columns * pivot_count;
    for (int64_t k = 0; k < pivot_count; ++k) {
      const int64_t at = backwards ? pivot_count - 1 - k : k, other = exchange[at] - 1;
      if (other == at || other < 0 || other >= rows) continue;
      const T kept = column[at];
      column[at] = column[other];
      column[other] = kept;
    }
  });
}

// Where exchanges take the rows of matrices. A thread follows one row through all exchanges of its matrix.
constexpr int kOrderThreads = 256, kExchangesAtOnce = 1024;
__global__ void __launch_bounds__(kOrderThreads)
    row_order_kernel(const int32_t* pivots, int m, int pivot_count, int blocks_each, int32_t* order) {
  __shared__ int32_t others[kExchangesAtOnce];
  const int64_t matrix = blockIdx.x / blocks_each;
  const int row = static_cast<int>(blockIdx.x % blocks_each) * kOrderThreads + threadIdx.x;
  int place = row;
  for (int first = 0; first < pivot_count; first += kExchangesAtOnce) {
    const int count = min(kExchangesAtOnce, pivot_count - first);
    __syncthreads();
    for (int r = threadIdx.x; r < count; r += blockDim.x) {
      const int other = pivots[matrix * pivot_count + first + r] - 1;
      others[r] = other < 0 || other >= m ? first + r : other;  // what is no row exchanges nothing
    }
    __syncthreads();
#pragma unroll 8
    for (int r = 0; r < count; ++r) {
      const int other = others[r];
      place = place == first + r ? other : place == other ? first + r : place;
    }
  }
  if (row < m) order[matrix * m + place] = row;
}

template <class T>
void permutations_as(const int32_t* order, int64_t count, int64_t m, void* matrices, cudaStream_t stream) {
  T* data = static_cast<T*>(matrices);
  const Divider by_side(m);
  grid_loop(count * m * m, stream, [=] __device__(int64_t i) {
    int64_t matrix = i;
    const int64_t column = by_side.take(matrix), row = by_side.take(matrix);
    data[i] = order[matrix * m + column] == row ? T(1) : T(0);
  });
}

template <class T>
void determinant_as(const void* lu, const int32_t* pivots, int64_t count, int64_t n, void* result, void* logarithm,
                    cudaStream_t stream) {
  using R = Real<T>;
  const T* matrices = static_cast<const T*>(lu);
  T* products = static_cast<T*>(result);
  R* logarithms = static_cast<R*>(logarithm);
  grid_loop(count, stream, [=] __device__(int64_t i) {
    T product = T(1);
    R sum = 0;
    for (int64_t d = 0; d < n; ++d) {
      if (pivots[i * n + d] != d + 1) product = -product;
      const T value = matrices[i * n * n + d * (n + 1)];
      if (!logarithms) {
        product *= value;
        continue;
      }
      const R size = length_of(value);
      product = size == 0 ? T(0) : product * (value / size);
      sum += log(size);
    }
    products[i] = product;
    if (logarithms) logarithms[i] = sum;
  });
}

template <class T>
void inverses_of(const void* values, void* inverses, int64_t count, int64_t length, const double* floors,
                 const double* ratios, double ratio, cudaStream_t stream) {
  const T* from = static_cast<const T*>(values);
  T* to = static_cast<T*>(inverses);
  grid_loop(count * length, stream, [=] __device__(int64_t i) {
    const int64_t matrix = i / length;
    const T* const its = from + matrix * length;
    const T first = its[0] < 0 ? -its[0] : its[0], last = its[length - 1] < 0 ? -its[length - 1] : its[length - 1];
    const double floor = floors ? floors[matrix] : 0.0;
    const T part = static_cast<T>(ratios ? ratios[matrix] : floor > 0 ? 0.0 : ratio);
    const T relative = part * (first > last ? first : last), least = static_cast<T>(floor);
    const T bound = relative > least ? relative : least, magnitude = from[i] < 0 ? -from[i] : from[i];
    to[i] = magnitude > bound ? T(1) / from[i] : T(0);
  });
}

}  // namespace

void launch_addresses(void** addresses, void* base, int64_t step_bytes, int64_t count, cudaStream_t stream) {
  char* first = static_cast<char*>(base);
  grid_loop(count, stream, [=] __device__(int64_t i) { addresses[i] = first + i * step_bytes; });
}

void launch_narrow(const int64_t* from, int32_t* to, int64_t count, cudaStream_t stream) {
  grid_loop(count, stream, [=] __device__(int64_t i) { to[i] = static_cast<int32_t>(from[i]); });
}

void launch_conjugate(void* numbers, int dtype, int64_t count, cudaStream_t stream) {
  if (dtype == 9) {
    conjugate_as<thrust::complex<float>>(numbers, count, stream);
  } else if (dtype == 10) {
    conjugate_as<thrust::complex<double>>(numbers, count, stream);
  }
}

void launch_part(const Part& part, void* to, const void* from, int dtype, cudaStream_t stream) {
  by_number(dtype, [&](auto sample) { part_as<decltype(sample)>(part, to, from, stream); });
}

void launch_exchange_rows(void* matrices, int dtype, int64_t count, int64_t rows, int64_t columns,
                          const int32_t* pivots, int64_t pivot_count, bool backwards, cudaStream_t stream) {
  by_number(dtype, [&](auto sample) {
    exchange_as<decltype(sample)>(matrices, count, rows, columns, pivots, pivot_count, backwards, stream);
  });
}

void launch_permutations(const int32_t* pivots, int64_t count, int64_t m, int64_t pivot_count, int32_t* order,
                         void* matrices, int dtype, cudaStream_t stream) {
  if (count == 0 || m == 0) return;
  const int64_t blocks_each = (m + kOrderThreads - 1) / kOrderThreads;
  const unsigned threads = m <= 32 ? 32 : kOrderThreads;
  row_order_kernel<<<static_cast<unsigned>(count * blocks_each), threads, 0, stream>>>(
      pivots, static_cast<int>(m), static_cast<int>(pivot_count), static_cast<int>(blocks_each), order);
  by_number(dtype, [&](auto sample) { permutations_as<decltype(sample)>(order, count, m, matrices, stream); });
}

void launch_plain_pivots(int32_t* pivots, int64_t count, int64_t pivot_count, cudaStream_t stream) {
  grid_loop(count * pivot_count, stream,
            [=] __device__(int64_t i) { pivots[i] = static_cast<int32_t>(i % pivot_count) + 1; });
}

void launch_determinant(const void* lu, const int32_t* pivots, int64_t count, int64_t n, void* result, void* logarithm,
                        int dtype, cudaStream_t stream) {
  by_number(dtype,
            [&](auto sample) { determinant_as<decltype(sample)>(lu, pivots, count, n, result, logarithm, stream); });
}

void launch_inverses(const void* values, void* inverses, int dtype, int64_t count, int64_t length, const double* floors,
                     const double* ratios, double ratio, cudaStream_t stream) {
  if (dtype == 6) return inverses_of<float>(values, inverses, count, length, floors, ratios, ratio, stream);
  inverses_of<double>(values, inverses, count, length, floors, ratios, ratio, stream);
}

}  // namespace sconce::cuda
