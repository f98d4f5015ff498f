// walk_elements: visits the elements of two tensors of equal sizes in row-major order, for any strides. Slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sconce/tensor.h"

namespace sconce {

// Calls visit(a, b) for each element, with its offset from the first element of each tensor, in elements.
template <class F>
void walk_elements(IntSpan sizes, IntSpan strides_a, IntSpan strides_b, F&& visit) {
  std::vector<int64_t> index(sizes.size(), 0);
  for (const int64_t size : sizes)
    if (size == 0) return;
  for (int64_t a = 0, b = 0;;) {
    visit(a, b);
    size_t d = sizes.size();
    for (;; --d) {
      if (d == 0) return;
      a += strides_a[d - 1];
      b += strides_b[d - 1];
      if (++index[d - 1] < sizes[d - 1]) break;
      a -= sizes[d - 1] * strides_a[d - 1];
      b -= sizes[d - 1] * strides_b[d - 1];
      index[d - 1] = 0;
    }
  }
}

}  // namespace sconce
