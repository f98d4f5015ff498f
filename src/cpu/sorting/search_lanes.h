// Binary searches of several values at once. One thread.
#pragma once

#include <cstdint>

namespace sconce {

// places[i]: the insertion point of values[i] in row[0, n): before equal elements, or after them if `right`. The
// probes are those of a plain binary search, so unsorted rows and NaNs give the same results as it. n below 2^31.
void search_values(const float* row, int64_t n, const float* values, int64_t count, bool right,
                   int32_t* places) noexcept;
void search_values(const int32_t* row, int64_t n, const int32_t* values, int64_t count, bool right,
                   int32_t* places) noexcept;
void search_values(const double* row, int64_t n, const double* values, int64_t count, bool right,
                   int32_t* places) noexcept;
void search_values(const int64_t* row, int64_t n, const int64_t* values, int64_t count, bool right,
                   int32_t* places) noexcept;

// A plain binary search, for rows of any length and for rows ordered by `sorter`, if not null.
template <class T>
int64_t search_value(const T* row, const int64_t* sorter, int64_t n, T value, bool right) noexcept {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + ((high - low) >> 1);
    const T at = row[sorter ? sorter[middle] : middle];
    if (right ? !(at > value) : !(at >= value))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace sconce
