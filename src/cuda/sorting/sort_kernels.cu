#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <type_traits>

#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/sorting/sort_kernels.h"
#include "src/cuda/sorting/sort_rows.cuh"

namespace sconce::cuda {
namespace {

int bits_for(int64_t numbers) {
  int bits = 0;
  while (int64_t{1} << bits < numbers) ++bits;
  return bits;
}

// Sorts all rows at once: by key, with row and position in one word; then stably by row.
template <class Word, class Number>
cudaError_t sort_long_rows(void* scratch, size_t& scratch_bytes, const Keys<Word>& keys, const SortCall& call, int bits,
                           cudaStream_t stream) {
  // Two-byte words would select CUB's slower sort.
  using Key = std::conditional_t<sizeof(Number) == 8 || sizeof(Word) == 8, uint64_t, uint32_t>;
  const Number count = static_cast<Number>(call.rows * call.length), length = static_cast<Number>(call.length);
  const int at_bits = bits_for(call.length), row_bits = bits_for(call.rows);
  const auto aligned = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
  const size_t key_bytes = aligned(count * sizeof(Key)), place_bytes = aligned(count * sizeof(Number));
  char* const base = static_cast<char*>(scratch);
  const auto at = [&](size_t offset) { return base ? base + offset : nullptr; };
  cub::DoubleBuffer<Key> sorted(reinterpret_cast<Key*>(at(0)), reinterpret_cast<Key*>(at(key_bytes)));
  cub::DoubleBuffer<Number> places(reinterpret_cast<Number*>(at(2 * key_bytes)),
                                   reinterpret_cast<Number*>(at(2 * key_bytes + place_bytes)));
  const size_t fixed = 2 * (key_bytes + place_bytes);
  void* const temporary = at(fixed);
  size_t by_key = 0, by_row = 0;
  cudaError_t error = cub::DeviceRadixSort::SortPairs(nullptr, by_key, sorted, places, count, 0, bits, stream);
  if (error == cudaSuccess && row_bits > 0)
    error = cub::DeviceRadixSort::SortKeys(nullptr, by_row, places, count, at_bits, at_bits + row_bits, stream);
  if (error != cudaSuccess || !scratch) {
    scratch_bytes = fixed + std::max<size_t>(std::max(by_key, by_row), 1);
    return error;
  }
  Key* const first = sorted.Current();
  Number* const numbers = places.Current();
  grid_loop(static_cast<int64_t>(count), stream, [=] __device__(int64_t i) {
    const auto flat = static_cast<Number>(i);
    const Number row = flat / length;
    first[i] = keys.key(keys.element(i));
    numbers[i] = row << at_bits | (flat - row * length);
  });
  error = cub::DeviceRadixSort::SortPairs(temporary, by_key, sorted, places, count, 0, bits, stream);
  if (error == cudaSuccess && row_bits > 0)
    error = cub::DeviceRadixSort::SortKeys(temporary, by_row, places, count, at_bits, at_bits + row_bits, stream);
  if (error != cudaSuccess) return error;
  const Number* const order = places.Current();
  // With one row, the sorted keys are at hand, and most elements follow from them without being fetched.
  const Key* const key_of_place = row_bits == 0 ? sorted.Current() : nullptr;
  const SortCall to = call;
  grid_loop(static_cast<int64_t>(count), stream, [=] __device__(int64_t i) {
    const Number number = order[i], mine = number & ((Number{1} << at_bits) - 1);
    const int64_t row = number >> at_bits, place = i - row * to.length;
    if (!is_kept(to, place)) return;
    Word element;
    if (!key_of_place || !keys.restore(static_cast<Word>(key_of_place[i]), element))
      element = keys.element(row * to.length + mine);
    put_sorted(keys, to, row, place, mine, element);
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_sort(void* scratch, size_t& scratch_bytes, const SortCall& call, cudaStream_t stream) {
  const KeyForm form = key_form(call.dtype, call.descending);
  cudaError_t error = cudaErrorNotSupported;
  with_keys(call.in, form, [&](const auto& keys) {
    if (call.length <= longest_in_block<std::decay_t<decltype(keys.sign)>>()) {
      if (!scratch) scratch_bytes = 0;
      error = scratch ? sort_short_rows(keys, call, form.bits, stream) : cudaSuccess;
    } else if (bits_for(call.rows) + bits_for(call.length) <= 32 && call.rows * call.length <= INT32_MAX) {
      error = sort_long_rows<std::decay_t<decltype(keys.sign)>, uint32_t>(scratch, scratch_bytes, keys, call, form.bits,
                                                                          stream);
    } else {
      error = sort_long_rows<std::decay_t<decltype(keys.sign)>, uint64_t>(scratch, scratch_bytes, keys, call, form.bits,
                                                                          stream);
    }
  });
  return error;
}

}  // namespace sconce::cuda
