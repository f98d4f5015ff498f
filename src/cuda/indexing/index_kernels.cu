#include <thrust/complex.h>

#include <type_traits>

#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/element_sizes.cuh"
#include "src/cuda/device_code/elements.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/indexing/index_kernels.h"

namespace sconce::cuda {
namespace {

// Reads an index into a dimension of `size`; if it `wraps`, -1 is the last place. False if it is out of bounds, which
// is noted.
__device__ bool read_index(const char* at, int64_t size, bool wraps, int* noted, int note, int64_t& index) {
  index = *reinterpret_cast<const int64_t*>(at);
  if (wraps && index < 0) index += size;
  if (index >= 0 && index < size) return true;
  *reinterpret_cast<volatile int*>(noted) = note;
  return false;
}

struct IndexSteps {
  explicit IndexSteps(const IndexWalk& given) : walk(given), rest(given.rest) {
    for (int d = 0; d < given.rank; ++d) sizes[d] = Divider(given.sizes[d]);
    for (int d = 0; d < given.rest_rank; ++d) rest_sizes[d] = Divider(given.rest_sizes[d]);
  }
  // False if an index is out of bounds.
  __device__ bool locate(int64_t position, int64_t& self, int64_t& other) const {
    const IndexWalk& w = walk;
    int64_t at[kMaxIndexRank];
    for (int d = 0; d < w.rank; ++d) {
      at[d] = d + 1 < w.rank ? sizes[d].take(position) : position;
      other += at[d] * w.other[d];
    }
    for (int k = 0; k < w.count; ++k) {
      const char* p = w.index[k];
      for (int d = 0; d < w.rank; ++d) p += at[d] * w.index_strides[k][d];
      int64_t index;
      if (!read_index(p, w.indexed_sizes[k], true, w.noted, w.note, index)) return false;
      self += index * w.indexed_strides[k];
    }
    return true;
  }
  __device__ void add_rest(int64_t i, int64_t& self, int64_t& other) const {
    for (int d = 0; d < walk.rest_rank; ++d) {
      const int64_t at = d + 1 < walk.rest_rank ? rest_sizes[d].take(i) : i;
      self += at * walk.rest_self[d];
      other += at * walk.rest_other[d];
    }
  }

  IndexWalk walk;
  Divider sizes[kMaxIndexRank], rest_sizes[kMaxIndexRank], rest;
};

// Whether neighbours in the other tensor are neighbouring positions (of indexed columns), not elements of one position.
bool positions_are_inner(const IndexWalk& w) {
  const auto distance = [](int64_t stride) { return stride < 0 ? -stride : stride; };
  return w.rank > 0 && w.rest_rank > 0 && w.other[0] != 0 && distance(w.other[0]) < distance(w.rest_other[0]);
}

template <class T>
void index_as(const IndexWalk& walk, char* self, char* other, bool to_self, cudaStream_t stream) {
  const IndexSteps w(walk);
  const bool inner_positions = positions_are_inner(walk);
  const Divider inner = inner_positions ? Divider(walk.positions) : w.rest;
  grid_loop(walk.positions * walk.rest, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    const int64_t first = inner.take(i);
    if (!w.locate(inner_positions ? first : i, s, o)) return;
    w.add_rest(inner_positions ? i : first, s, o);
    if (to_self)
      *reinterpret_cast<T*>(self + s) = *reinterpret_cast<const T*>(other + o);
    else
      *reinterpret_cast<T*>(other + o) = *reinterpret_cast<const T*>(self + s);
  });
}

// One index a row of adjacent elements: a part of a block a row.
template <class T, bool kToSelf>
__global__ void __launch_bounds__(256) index_rows_kernel(IndexWalk w, char* self, char* other, int elements) {
  const int64_t position = blockIdx.x * int64_t{blockDim.y} + threadIdx.y;
  if (position >= w.positions) return;
  int64_t index;
  if (!read_index(w.index[0] + position * w.index_strides[0][0], w.indexed_sizes[0], true, w.noted, w.note, index))
    return;
  T* const selected = reinterpret_cast<T*>(self + index * w.indexed_strides[0]);
  T* const row = reinterpret_cast<T*>(other + position * w.other[0]);
  for (int i = threadIdx.x; i < elements; i += blockDim.x)
    if constexpr (kToSelf)
      selected[i] = row[i];
    else
      row[i] = selected[i];
}
// False if the walk is of another kind.
template <class T>
bool index_rows(const IndexWalk& w, char* self, char* other, bool to_self, cudaStream_t stream) {
  if (w.count != 1 || w.rank != 1 || w.rest_rank != 1 || w.rest < 16 || w.rest > INT32_MAX ||
      w.rest_self[0] != sizeof(T) || w.rest_other[0] != sizeof(T))
    return false;
  unsigned wide = 16;
  while (wide < 256 && static_cast<int64_t>(wide) * 2 <= w.rest) wide *= 2;
  const dim3 threads(wide, 256 / wide);
  const auto blocks = static_cast<unsigned>((w.positions + threads.y - 1) / threads.y);
  const auto kernel = to_self ? index_rows_kernel<T, true> : index_rows_kernel<T, false>;
  kernel<<<blocks, threads, 0, stream>>>(w, self, other, static_cast<int>(w.rest));
  return true;
}

// Returns how many bytes to move at once: up to 16 if the elements that a position selects are adjacent and aligned to
// that, else itemsize. Rewrites the walk in units of that size.
int widened_item(IndexWalk& w, uintptr_t self, uintptr_t other, int itemsize) {
  if (w.rest_rank == 0 || w.rest_self[0] != itemsize || w.rest_other[0] != itemsize) return itemsize;
  int64_t all = static_cast<int64_t>(self | other) | w.rest_sizes[0] * itemsize;
  for (int d = 1; d < w.rest_rank; ++d) all |= w.rest_self[d] | w.rest_other[d];
  for (int d = 0; d < w.rank; ++d) all |= w.other[d];
  for (int k = 0; k < w.count; ++k) all |= w.indexed_strides[k];
  int wide = 16;
  while (wide > itemsize && all % wide != 0) wide /= 2;
  const int64_t each = wide / itemsize;
  w.rest_sizes[0] /= each;
  w.rest /= each;
  w.rest_self[0] = w.rest_other[0] = wide;
  return wide;
}

struct ScatterSteps {
  explicit ScatterSteps(const ScatterWalk& given) : walk(given) {
    for (int d = 0; d < given.rank; ++d) sizes[d] = Divider(given.sizes[d]);
  }
  // Byte offsets in src and out of element i of the index; false if that index is out of bounds.
  __device__ bool locate(int64_t i, int64_t& src, int64_t& out) const {
    const ScatterWalk& w = walk;
    int64_t index_at = 0;
    for (int d = w.rank - 1; d >= 0; --d) {
      const int64_t at = d > 0 ? sizes[d].take(i) : i;
      index_at += at * w.index[d];
      src += at * w.src[d];
      if (d != w.dim) out += at * w.out[d];
    }
    int64_t index;
    if (!read_index(w.indices + index_at, w.size, false, w.noted, w.note, index)) return false;
    if (w.rank > 0) out += index * w.out[w.dim];
    return true;
  }

  ScatterWalk walk;
  Divider sizes[kMaxIndexRank];
};

// For at most kRank dimensions and offsets below 2^31. Missing dimensions have size 1.
template <int kRank>
struct SmallScatterSteps {
  explicit SmallScatterSteps(const ScatterWalk& given)
      : size(given.size), indices(given.indices), noted(given.noted), note(given.note) {
    for (int d = 0; d < kRank; ++d) {
      const int from = d - (kRank - given.rank);
      if (from < 0) continue;
      sizes[d] = Divider(given.sizes[from]);
      index[d] = static_cast<uint32_t>(given.index[from]);
      src[d] = static_cast<uint32_t>(given.src[from]);
      (from == given.dim ? along : out[d]) = static_cast<uint32_t>(given.out[from]);
    }
  }
  __device__ bool locate(int64_t number, int64_t& src_place, int64_t& out_place) const {
    auto i = static_cast<uint32_t>(number);
    uint32_t index_at = 0, src_at = 0, out_at = 0;
#pragma unroll
    for (int d = kRank - 1; d >= 0; --d) {
      const uint32_t at = d > 0 ? sizes[d].take_small(i) : i;
      index_at += at * index[d];
      src_at += at * src[d];
      out_at += at * out[d];
    }
    int64_t place;
    if (!read_index(indices + index_at, size, false, noted, note, place)) return false;
    src_place = src_at;
    out_place = out_at + static_cast<uint32_t>(place) * along;
    return true;
  }

  int64_t size;
  const char* indices;
  int* noted;
  int note;
  uint32_t index[kRank] = {}, src[kRank] = {}, out[kRank] = {}, along = 0;
  Divider sizes[kRank];
};

bool small_scatter(const ScatterWalk& w) {
  if (w.count > INT32_MAX || w.rank > 4) return false;
  // The farthest byte of each, in double, which does not overflow.
  double index = 8, src = 16, out = 16;
  for (int d = 0; d < w.rank; ++d) {
    const auto last = static_cast<double>(w.sizes[d] - 1);
    index += last * static_cast<double>(w.index[d]);
    src += last * static_cast<double>(w.src[d]);
    out += (d == w.dim ? static_cast<double>(w.size - 1) : last) * static_cast<double>(w.out[d]);
  }
  return index <= INT32_MAX && src <= INT32_MAX && out <= INT32_MAX;
}

template <class F>
void with_steps(const ScatterWalk& walk, F&& f) {
  if (!small_scatter(walk)) return f(ScatterSteps(walk));
  if (walk.rank <= 2) return f(SmallScatterSteps<2>(walk));
  f(SmallScatterSteps<4>(walk));
}

// Atomically changes a value of 1 to 8 bytes through the word that contains it; writes nothing if it stays equal.
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
      if (next == expected) return;
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
      if (next == bits) return;
      seen = atomicCAS(word, expected, (expected & ~mask) | (next << shift & mask));
    } while (seen != expected);
  }
}

// Halves are combined as floats and rounded each time, as in ATen.
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
    case ScatterReduce::kSum:
      return static_cast<T>(static_cast<C>(x + y));
    case ScatterReduce::kProduct:
      return static_cast<T>(static_cast<C>(x * y));
    case ScatterReduce::kMost:
      return x != x || x > y ? a : b;
    default:
      return x != x || x < y ? a : b;
  }
}

template <class F>
void by_dtype(int dtype, F&& f) {
  switch (dtype) {
    case 0:
      return f(uint8_t{});
    case 1:
      return f(int8_t{});
    case 2:
      return f(int16_t{});
    case 3:
      return f(int32_t{});
    case 4:
      return f(int64_t{});
    case 5:
      return f(__half{});
    case 6:
      return f(float{});
    case 7:
      return f(double{});
    case 11:
      return f(bool{});
    default:
      return f(__nv_bfloat16{});
  }
}

// Adds a half through the device's addition of pairs; the other half of the pair gets -0, which changes nothing.
template <class T, class Pair>
__device__ void add_in_pair(char* to, T value) {
  const bool second = reinterpret_cast<uintptr_t>(to) & 2;
  const T nothing = static_cast<T>(-0.0f);
  Pair pair;
  pair.x = second ? nothing : value;
  pair.y = second ? value : nothing;
  atomicAdd(reinterpret_cast<Pair*>(to - (second ? 2 : 0)), pair);
}

// Uses the device's own atomic additions.
template <class T>
__device__ bool added(char* to, T value) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t>) {
    atomicAdd(reinterpret_cast<T*>(to), value);
    return true;
  } else if constexpr (std::is_same_v<T, __half>) {
    add_in_pair<__half, __half2>(to, value);
    return true;
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    add_in_pair<__nv_bfloat16, __nv_bfloat162>(to, value);
    return true;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
    return true;
  }
  return false;
}

template <class T, class Steps>
void scatter_reduce_as(const Steps& w, int64_t count, char* out, const char* src, ScatterReduce reduce,
                       cudaStream_t stream) {
  grid_loop(count, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    if (!w.locate(i, s, o)) return;
    const T value = *reinterpret_cast<const T*>(src + s);
    if (reduce == ScatterReduce::kSum && added(out + o, value)) return;
    update<T>(out + o, [=](T before) { return combined<T>(before, value, reduce); });
  });
}

// Rows whose index is one for all their elements, as when an index is expanded, in packs of 16 bytes.
constexpr int kScatterPack = 16;
template <class T>
struct alignas(kScatterPack) ScatterPack {
  T at[kScatterPack / sizeof(T)];
};

// Rewrites the walk in packs if that is possible.
bool packed_scatter(ScatterWalk& w, uintptr_t out, uintptr_t src, int itemsize) {
  const int last = w.rank - 1, each = kScatterPack / itemsize;
  if (w.rank < 2 || w.dim == last || w.index[last] != 0 || w.src[last] != itemsize || w.out[last] != itemsize ||
      w.sizes[last] % each != 0)
    return false;
  auto all = static_cast<int64_t>(out | src);
  for (int d = 0; d < last; ++d) all |= w.src[d] | w.out[d];
  if (all % kScatterPack != 0) return false;
  w.sizes[last] /= each;
  w.count /= each;
  w.src[last] = w.out[last] = kScatterPack;
  return true;
}

// Compute capability 9.0 adds a pack at once; each element of it for itself, as a loop does.
template <class T>
__device__ void add_pack(char* to, const ScatterPack<T>& pack) {
#if __CUDA_ARCH__ >= 900
  const auto& words = reinterpret_cast<const uint4&>(pack);
  if constexpr (std::is_same_v<T, float>) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(pack.at[0]), "f"(pack.at[1]),
                 "f"(pack.at[2]), "f"(pack.at[3])
                 : "memory");
    return;
  } else if constexpr (std::is_same_v<T, __half>) {
    asm volatile("red.global.add.noftz.v4.f16x2 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x), "r"(words.y),
                 "r"(words.z), "r"(words.w)
                 : "memory");
    return;
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    asm volatile("red.global.add.noftz.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x), "r"(words.y),
                 "r"(words.z), "r"(words.w)
                 : "memory");
    return;
  }
#endif
  for (int k = 0; k < static_cast<int>(kScatterPack / sizeof(T)); ++k)
    added(to + k * static_cast<int>(sizeof(T)), pack.at[k]);
}

template <class T, class Steps>
void scatter_sums_in_packs(const Steps& w, int64_t count, char* out, const char* src, cudaStream_t stream) {
  grid_loop(count, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    if (w.locate(i, s, o)) add_pack(out + o, *reinterpret_cast<const ScatterPack<T>*>(src + s));
  });
}

template <class Key>
void index_keys_as(const IndexWalk& walk, int64_t unit, Key* keys, int64_t* numbers, cudaStream_t stream) {
  const IndexSteps w(walk);
  const Divider by(unit);
  grid_loop(walk.positions, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    keys[i] = w.locate(i, s, o) ? static_cast<Key>(by.quotient(s)) : Key(-1);
    numbers[i] = i;
  });
}

template <class T, class Key>
void index_add_as(const IndexWalk& walk, char* self, const char* other, int64_t unit, const Key* keys,
                  const int64_t* numbers, cudaStream_t stream) {
  using C = typename As<T>::Type;
  const IndexSteps w(walk);
  const int64_t positions = walk.positions;
  grid_loop(walk.positions * walk.rest, stream, [=] __device__(int64_t i) {
    const int64_t rest = w.rest.take(i), first = i;
    const Key key = keys[first];
    if (key < 0 || (first > 0 && key == keys[first - 1])) return;
    int64_t s = key * unit, rest_other = 0;
    w.add_rest(rest, s, rest_other);
    C sum = static_cast<C>(*reinterpret_cast<const T*>(self + s));
    for (int64_t at = first; at < positions && keys[at] == key; ++at) {
      int64_t o = rest_other, n = numbers[at];
      for (int d = 0; d < w.walk.rank; ++d) o += (d + 1 < w.walk.rank ? w.sizes[d].take(n) : n) * w.walk.other[d];
      sum = static_cast<C>(sum + static_cast<C>(*reinterpret_cast<const T*>(other + o)));
    }
    *reinterpret_cast<T*>(self + s) = static_cast<T>(sum);
  });
}

template <class T, class Steps>
void scatter_as(const Steps& w, int64_t count, char* out, const char* src, cudaStream_t stream) {
  grid_loop(count, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    if (w.locate(i, s, o)) *reinterpret_cast<T*>(out + o) = *reinterpret_cast<const T*>(src + s);
  });
}
template <class Steps, class T>
void scatter_value_as(const Steps& w, int64_t count, char* out, T value, cudaStream_t stream) {
  grid_loop(count, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    if (w.locate(i, s, o)) *reinterpret_cast<T*>(out + o) = value;
  });
}
template <class Steps>
void scatter_count(const Steps& w, int64_t count, char* counts, cudaStream_t stream) {
  grid_loop(count, stream, [=] __device__(int64_t i) {
    int64_t s = 0, o = 0;
    if (w.locate(i, s, o)) atomicAdd(reinterpret_cast<unsigned long long*>(counts + o), 1ull);
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
    // Integer counts wrap in the tensor's dtype, as in ATen.
    int64_t times = counts[i];
    if constexpr (std::is_integral_v<T>) times = static_cast<int64_t>(static_cast<T>(times));
    if (times != 0) values[i] = divided<T>(values[i], times);
  });
}

}  // namespace

void launch_index(const IndexWalk& walk, char* self, char* other, int itemsize, bool to_self, cudaStream_t stream) {
  IndexWalk wide = walk;
  const int item = widened_item(wide, reinterpret_cast<uintptr_t>(self), reinterpret_cast<uintptr_t>(other), itemsize);
  by_width(item, item > itemsize, [&](auto sample) {
    using T = decltype(sample);
    if (!index_rows<T>(wide, self, other, to_self, stream)) index_as<T>(wide, self, other, to_self, stream);
  });
}

void launch_index_keys(const IndexWalk& walk, int64_t unit, int key_bytes, void* keys, int64_t* numbers,
                       cudaStream_t stream) {
  if (key_bytes == 4)
    index_keys_as(walk, unit, static_cast<int32_t*>(keys), numbers, stream);
  else
    index_keys_as(walk, unit, static_cast<int64_t*>(keys), numbers, stream);
}

void launch_index_add(const IndexWalk& walk, char* self, const char* other, int dtype, int64_t unit, int key_bytes,
                      const void* keys, const int64_t* numbers, cudaStream_t stream) {
  const auto add = [&](auto sample) {
    using T = decltype(sample);
    if (key_bytes == 4)
      index_add_as<T>(walk, self, other, unit, static_cast<const int32_t*>(keys), numbers, stream);
    else
      index_add_as<T>(walk, self, other, unit, static_cast<const int64_t*>(keys), numbers, stream);
  };
  if (dtype == 9) return add(thrust::complex<float>{});
  if (dtype == 10) return add(thrust::complex<double>{});
  by_dtype(dtype, add);
}

void launch_scatter(const ScatterWalk& walk, char* out, const char* src, int itemsize, cudaStream_t stream) {
  by_size(itemsize, [&](auto sample) {
    with_steps(walk, [&](const auto& steps) { scatter_as<decltype(sample)>(steps, walk.count, out, src, stream); });
  });
}

void launch_scatter_value(const ScatterWalk& walk, char* out, const void* element, int itemsize, cudaStream_t stream) {
  by_size(itemsize, [&](auto sample) {
    __builtin_memcpy(&sample, element, sizeof sample);
    with_steps(walk, [&](const auto& steps) { scatter_value_as(steps, walk.count, out, sample, stream); });
  });
}

void launch_scatter_reduce(const ScatterWalk& walk, char* out, const char* src, int dtype, ScatterReduce reduce,
                           cudaStream_t stream) {
  by_dtype(dtype, [&](auto sample) {
    using T = decltype(sample);
    // Only sums: the others go round a loop for each element, which is better on a thread of its own.
    if constexpr (std::is_same_v<typename As<T>::Type, float>) {
      ScatterWalk packed = walk;
      if (reduce == ScatterReduce::kSum &&
          packed_scatter(packed, reinterpret_cast<uintptr_t>(out), reinterpret_cast<uintptr_t>(src), sizeof(T)))
        return with_steps(packed,
                          [&](const auto& steps) { scatter_sums_in_packs<T>(steps, packed.count, out, src, stream); });
    }
    with_steps(walk, [&](const auto& steps) { scatter_reduce_as<T>(steps, walk.count, out, src, reduce, stream); });
  });
}

void launch_scatter_count(const ScatterWalk& walk, char* counts, cudaStream_t stream) {
  with_steps(walk, [&](const auto& steps) { scatter_count(steps, walk.count, counts, stream); });
}

void launch_divide_by_counts(char* out, int dtype, const int64_t* counts, int64_t count, cudaStream_t stream) {
  by_dtype(dtype, [&](auto sample) { divide_as<decltype(sample)>(out, counts, count, stream); });
}

}  // namespace sconce::cuda
