// Moves a rectangle of elements of 1, 2, 4, 8 or 16 bytes between two strided regions: the inner loop of every copy.
// Source and destination do not overlap. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sconce {

struct StridedRows {
  char* data;
  int64_t inner;  // bytes between neighbours in a row
  int64_t outer;  // bytes between rows
};

// Element (i, j), i < inner_count, j < outer_count, is at data + i * inner + j * outer on either side. Fastest if
// destination rows are packed and source rows (block copies) or source columns (tiled transposition) are.
void move_rectangle(size_t itemsize, StridedRows source, StridedRows destination, int64_t inner_count,
                    int64_t outer_count) noexcept;

}  // namespace sconce
