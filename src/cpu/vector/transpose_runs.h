// Transposes weights from runs of memory, one per output channel, to panels whose rows hold one number of every
// channel.
#pragma once

#include <cstdint>

namespace sconce {

// Any elements of 4 bytes.
struct RunsToPanel {
  const float* from;
  int64_t from_apart;  // from the start of a run to that of the next
  int64_t columns;     // runs
  int64_t rows;        // elements of a run: element i * taps + t of run j goes to to[t * tap_apart + i * apart + j]
  int64_t taps;
  float* to;
  int64_t tap_apart, apart;
  int64_t padded;  // columns from `columns` to this one become zeros
};

// Reads and writes whole cache lines, however far apart runs and rows are.
void transpose_runs(const RunsToPanel& p) noexcept;

}  // namespace sconce
