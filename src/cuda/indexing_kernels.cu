#include "src/cuda/indexing_kernels.h"

#include "src/cuda/element_sizes.cuh"
#include "src/cuda/elements.cuh"
#include "src/cuda/grid_loop.cuh"

namespace sconce::cuda {
namespace {

// False where an index is out of bounds.
__device__ bool locate(const IndexWalk& w, int64_t position, int64_t& self, int64_t& other) {
  int64_t at[kMaxIndexRank];
  for (int d = 0; d < w.rank; ++d) {
    at[d] = position % w.sizes[d];
    position /= w.sizes[d];
    other += at[d] * w.other[d];
  }
  for (int k = 0; k < w.count; ++k) {
    const char* p = w.index[k];
    for (int d = 0; d < w.rank; ++d) p += at[d] * w.index_strides[k][d];
    int64_t index = *reinterpret_cast<const int64_t*>(p);
    if (index < 0) index += w.indexed_sizes[k];
    if (index < 0 || index >= w.indexed_sizes[k]) {
      *reinterpret_cast<volatile int*>(w.noted) = w.note;
      return false;
    }
    self += index * w.indexed_strides[k];
  }
  return true;
}

__device__ void add_rest(const IndexWalk& w, int64_t rest, int64_t& self, int64_t& other) {
  for (int d = 0; d < w.rest_rank; ++d) {
    self += rest % w.rest_sizes[d] * w.rest_self[d];
    other += rest % w.rest_sizes[d] * w.rest_other[d];
    rest /= w.rest_sizes[d];
  }
}

template <class T>
void index_as(const IndexWalk& walk, char* self, char* other, bool to_self, cudaStream_t stream) {
  const IndexWalk w = walk;
  grid_loop(w.positions * w.rest, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    if (!locate(w, i / w.rest, s, o)) return;
    add_rest(w, i % w.rest, s, o);
    if (to_self)
      *reinterpret_cast<T*>(self + s) = *reinterpret_cast<const T*>(other + o);
    else
      *reinterpret_cast<T*>(other + o) = *reinterpret_cast<const T*>(self + s);
  });
}

// Bytes in index, src and out of element i; false where the index is out of bounds.
__device__ bool locate(const ScatterWalk& w, int64_t i, int64_t& src, int64_t& out) {
  int64_t index_at = 0;
  for (int d = w.rank - 1; d >= 0; --d) {
    const int64_t at = i % w.sizes[d];
    i /= w.sizes[d];
    index_at += at * w.index[d];
    src += at * w.src[d];
    if (d != w.dim) out += at * w.out[d];
  }
  const int64_t index = *reinterpret_cast<const int64_t*>(w.indices + index_at);
  if (index < 0 || index >= w.size) {
    *reinterpret_cast<volatile int*>(w.noted) = 3;
    return false;
  }
  if (w.rank > 0) out += index * w.out[w.dim];
  return true;
}

// Changes a value of 1 to 8 bytes as one, through the word it lies in.
template <class T, class F>
__device__ void update(char* address, F f) {
  if constexpr (sizeof(T) == 8) {
    auto* word = reinterpret_cast<unsigned long long*>(address);
    unsigned long long seen = *word, expected;
    do {
      expected = seen;
      T value;
      memcpy(&value, &expected, 8);
      value = f(value);
      unsigned long long next;
      memcpy(&next, &value, 8);
      seen = atomicCAS(word, expected, next);
    } while (seen != expected);
  } else {
    auto* word = reinterpret_cast<unsigned*>(reinterpret_cast<uintptr_t>(address) & ~uintptr_t{3});
    const unsigned shift = static_cast<unsigned>(reinterpret_cast<uintptr_t>(address) & 3) * 8;
    const unsigned mask = sizeof(T) == 4 ? ~0u : ((1u << 8 * (sizeof(T) % 4)) - 1) << shift;
    unsigned seen = *word, expected;
    do {
      expected = seen;
      const unsigned bits = (expected & mask) >> shift;
      T value;
      memcpy(&value, &bits, sizeof(T));
      value = f(value);
      unsigned next = 0;
      memcpy(&next, &value, sizeof(T));
      seen = atomicCAS(word, expected, (expected & ~mask) | (next << shift & mask));
    } while (seen != expected);
  }
}

// Halves are combined as floats and rounded each time, as ATen's are.
template <class T>
struct As {
  using Type = T;
};
template <>
struct As<__half> {
  using Type = float;
};
template <>
struct As<__nv_bfloat16> {
  using Type = float;
};

template <class T>
__device__ T combined(T a, T b, ScatterReduce reduce) {
  using C = typename As<T>::Type;
  const C x = static_cast<C>(a), y = static_cast<C>(b);
  switch (reduce) {
    case ScatterReduce::kSum: return static_cast<T>(static_cast<C>(x + y));
    case ScatterReduce::kProduct: return static_cast<T>(static_cast<C>(x * y));
    case ScatterReduce::kMost: return x != x || x > y ? a : b;
    default: return x != x || x < y ? a : b;
  }
}

template <class F>
void by_dtype(int dtype, F&& f) {
  switch (dtype) {
    case 0: return f(uint8_t{});
    case 1: return f(int8_t{});
    case 2: return f(int16_t{});
    case 3: return f(int32_t{});
    case 4: return f(int64_t{});
    case 5: return f(__half{});
    case 6: return f(float{});
    case 7: return f(double{});
    case 11: return f(bool{});
    default: return f(__nv_bfloat16{});
  }
}

template <class T>
void scatter_reduce_as(const ScatterWalk& walk, char* out, const char* src, ScatterReduce reduce, cudaStream_t stream) {
  const ScatterWalk w = walk;
  grid_loop(w.count, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    if (!locate(w, i, s, o)) return;
    const T value = *reinterpret_cast<const T*>(src + s);
    update<T>(out + o, [=](T before) { return combined<T>(before, value, reduce); });
  });
}

template <class T>
void index_add_as(const IndexWalk& walk, char* self, const char* other, const int64_t* keys, const int64_t* numbers,
                  cudaStream_t stream) {
  using C = typename As<T>::Type;
  const IndexWalk w = walk;
  grid_loop(w.positions * w.rest, stream, [=] __device__(int64_t i) {
    const int64_t first = i / w.rest;
    if (keys[first] < 0 || (first > 0 && keys[first] == keys[first - 1])) return;
    int64_t s = keys[first], rest_other = 0;
    add_rest(w, i % w.rest, s, rest_other);
    C sum = static_cast<C>(*reinterpret_cast<const T*>(self + s));
    for (int64_t at = first; at < w.positions && keys[at] == keys[first]; ++at) {
      int64_t o = rest_other;
      for (int64_t d = 0, n = numbers[at]; d < w.rank; ++d) {
        o += n % w.sizes[d] * w.other[d];
        n /= w.sizes[d];
      }
      sum = static_cast<C>(sum + static_cast<C>(*reinterpret_cast<const T*>(other + o)));
    }
    *reinterpret_cast<T*>(self + s) = static_cast<T>(sum);
  });
}

template <class T>
void scatter_as(const ScatterWalk& walk, char* out, const char* src, cudaStream_t stream) {
  const ScatterWalk w = walk;
  grid_loop(w.count, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    if (locate(w, i, s, o)) *reinterpret_cast<T*>(out + o) = *reinterpret_cast<const T*>(src + s);
  });
}
template <class T>
void scatter_value_as(const ScatterWalk& walk, char* out, T value, cudaStream_t stream) {
  const ScatterWalk w = walk;
  grid_loop(w.count, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    if (locate(w, i, s, o)) *reinterpret_cast<T*>(out + o) = value;
  });
}
template <class T>
__device__ T divided(T value, int64_t by) {
  using C = typename As<T>::Type;
  const C number = static_cast<C>(value);
  if (static_cast<C>(0.5f) != C{} && sizeof(C) > 1) return static_cast<T>(static_cast<C>(number / static_cast<C>(by)));
  const auto whole = static_cast<int64_t>(number);
  return static_cast<T>(static_cast<C>(whole / by - (whole % by != 0 && whole < 0)));
}
template <class T>
void divide_as(char* out, const int64_t* counts, int64_t count, cudaStream_t stream) {
  auto* values = reinterpret_cast<T*>(out);
  grid_loop(count, stream, [=] __device__(int64_t i) {
    if (counts[i] != 0) values[i] = divided<T>(values[i], counts[i]);
  });
}

}  // namespace

void launch_index(const IndexWalk& walk, char* self, char* other, int itemsize, bool to_self, cudaStream_t stream) {
  by_size(itemsize, [&](auto sample) { index_as<decltype(sample)>(walk, self, other, to_self, stream); });
}

void launch_index_keys(const IndexWalk& walk, int64_t* keys, int64_t* numbers, cudaStream_t stream) {
  const IndexWalk w = walk;
  grid_loop(w.positions, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    keys[i] = locate(w, i, s, o) ? s : -1;
    numbers[i] = i;
  });
}

void launch_index_add(const IndexWalk& walk, char* self, const char* other, int dtype, const int64_t* keys,
                      const int64_t* numbers, cudaStream_t stream) {
  by_dtype(dtype, [&](auto sample) { index_add_as<decltype(sample)>(walk, self, other, keys, numbers, stream); });
}

void launch_scatter(const ScatterWalk& walk, char* out, const char* src, int itemsize, cudaStream_t stream) {
  by_size(itemsize, [&](auto sample) { scatter_as<decltype(sample)>(walk, out, src, stream); });
}

void launch_scatter_value(const ScatterWalk& walk, char* out, const void* element, int itemsize, cudaStream_t stream) {
  by_size(itemsize, [&](auto sample) {
    __builtin_memcpy(&sample, element, sizeof sample);
    scatter_value_as(walk, out, sample, stream);
  });
}

void launch_scatter_reduce(const ScatterWalk& walk, char* out, const char* src, int dtype, ScatterReduce reduce,
                           cudaStream_t stream) {
  by_dtype(dtype, [&](auto sample) { scatter_reduce_as<decltype(sample)>(walk, out, src, reduce, stream); });
}

void launch_scatter_count(const ScatterWalk& walk, char* counts, cudaStream_t stream) {
  const ScatterWalk w = walk;
  grid_loop(w.count, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    if (locate(w, i, s, o)) atomicAdd(reinterpret_cast<unsigned long long*>(counts + o), 1ull);
  });
}

void launch_divide_by_counts(char* out, int dtype, const int64_t* counts, int64_t count, cudaStream_t stream) {
  by_dtype(dtype, [&](auto sample) { divide_as<decltype(sample)>(out, counts, count, stream); });
}

}  // namespace sconce::cuda
