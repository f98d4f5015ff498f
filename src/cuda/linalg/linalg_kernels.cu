#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/linalg/linalg_kernels.h"

namespace sconce::cuda {
namespace {

template <class R>
struct Complex {
  R re, im;
};

template <class T>
struct Numbers {
  using Real = T;
  __device__ static T one() { return 1; }
  __device__ static T times(T a, T b) { return a * b; }
  __device__ static T size(T a) { return a < 0 ? -a : a; }
  __device__ static T direction(T a, T size) { return a / size; }
  __device__ static T negative(T a) { return -a; }
};
template <class R>
struct Numbers<Complex<R>> {
  using Real = R;
  using T = Complex<R>;
  __device__ static T one() { return {1, 0}; }
  __device__ static T times(T a, T b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  __device__ static R size(T a) { return hypot(a.re, a.im); }
  __device__ static T direction(T a, R size) { return {a.re / size, a.im / size}; }
  __device__ static T negative(T a) { return {-a.re, -a.im}; }
};

template <class F>
void by_type(int dtype, F&& f) {
  switch (dtype) {
    case 6:
      return f(float{});
    case 7:
      return f(double{});
    case 9:
      return f(Complex<float>{});
    default:
      return f(Complex<double>{});
  }
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
    T value{};
    if (p.kind == Part::kUnitLower && row == column)
      value = Numbers<T>::one();
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

template <class T>
void permutations_as(const int32_t* order, int64_t count, int64_t m, void* matrices, cudaStream_t stream) {
  T* data = static_cast<T*>(matrices);
  const Divider by_side(m);
  grid_loop(count * m * m, stream, [=] __device__(int64_t i) {
    int64_t matrix = i;
    const int64_t column = by_side.take(matrix), row = by_side.take(matrix);
    data[i] = order[matrix * m + column] == row ? Numbers<T>::one() : T{};
  });
}

template <class T>
void determinant_as(const void* lu, const int32_t* pivots, int64_t count, int64_t n, void* result, void* logarithm,
                    cudaStream_t stream) {
  using Of = Numbers<T>;
  using R = typename Of::Real;
  const T* matrices = static_cast<const T*>(lu);
  T* products = static_cast<T*>(result);
  R* logarithms = static_cast<R*>(logarithm);
  grid_loop(count, stream, [=] __device__(int64_t i) {
    T product = Of::one();
    R sum = 0;
    for (int64_t d = 0; d < n; ++d) {
      if (pivots[i * n + d] != d + 1) product = Of::negative(product);
      const T value = matrices[i * n * n + d * (n + 1)];
      if (!logarithms) {
        product = Of::times(product, value);
        continue;
      }
      const R size = Of::size(value);
      product = size == 0 ? T{} : Of::times(product, Of::direction(value, size));
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
    auto* data = static_cast<Complex<float>*>(numbers);
    grid_loop(count, stream, [=] __device__(int64_t i) { data[i].im = -data[i].im; });
  } else if (dtype == 10) {
    auto* data = static_cast<Complex<double>*>(numbers);
    grid_loop(count, stream, [=] __device__(int64_t i) { data[i].im = -data[i].im; });
  }
}

void launch_part(const Part& part, void* to, const void* from, int dtype, cudaStream_t stream) {
  by_type(dtype, [&](auto sample) { part_as<decltype(sample)>(part, to, from, stream); });
}

void launch_exchange_rows(void* matrices, int dtype, int64_t count, int64_t rows, int64_t columns,
                          const int32_t* pivots, int64_t pivot_count, bool backwards, cudaStream_t stream) {
  by_type(dtype, [&](auto sample) {
    exchange_as<decltype(sample)>(matrices, count, rows, columns, pivots, pivot_count, backwards, stream);
  });
}

void launch_permutations(const int32_t* pivots, int64_t count, int64_t m, int64_t pivot_count, int32_t* order,
                         void* matrices, int dtype, cudaStream_t stream) {
  grid_loop(count, stream, [=] __device__(int64_t i) {
    int32_t* rows = order + i * m;
    for (int64_t r = 0; r < m; ++r) rows[r] = static_cast<int32_t>(r);
    for (int64_t r = 0; r < pivot_count; ++r) {
      const int64_t other = pivots[i * pivot_count + r] - 1;
      if (other < 0 || other >= m) continue;
      const int32_t kept = rows[r];
      rows[r] = rows[other];
      rows[other] = kept;
    }
  });
  by_type(dtype, [&](auto sample) { permutations_as<decltype(sample)>(order, count, m, matrices, stream); });
}

void launch_plain_pivots(int32_t* pivots, int64_t count, int64_t pivot_count, cudaStream_t stream) {
  grid_loop(count * pivot_count, stream,
            [=] __device__(int64_t i) { pivots[i] = static_cast<int32_t>(i % pivot_count) + 1; });
}

void launch_determinant(const void* lu, const int32_t* pivots, int64_t count, int64_t n, void* result, void* logarithm,
                        int dtype, cudaStream_t stream) {
  by_type(dtype,
          [&](auto sample) { determinant_as<decltype(sample)>(lu, pivots, count, n, result, logarithm, stream); });
}

void launch_inverses(const void* values, void* inverses, int dtype, int64_t count, int64_t length, const double* floors,
                     const double* ratios, double ratio, cudaStream_t stream) {
  if (dtype == 6) return inverses_of<float>(values, inverses, count, length, floors, ratios, ratio, stream);
  inverses_of<double>(values, inverses, count, length, floors, ratios, ratio, stream);
}

}  // namespace sconce::cuda
