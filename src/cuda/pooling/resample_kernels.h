// Sampling at given places, and gradients that gather along lines, for host code. dtype: c10::ScalarType;
// cudaErrorNotSupported for others than floating ones.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/tensor/spatial/grid_taps.h"

namespace sconce::cuda {

// in [batch, channels, plane], grid [batch, places, dims], out [batch, channels, places], packed.
cudaError_t launch_grid_sample(const GridGeometry& geometry, int dtype, const void* in, const void* grid, void* out,
                               cudaStream_t stream);
// by_input (null: not wanted) is float64 or float32, zeros before; sums come in any order. by_grid: as grid.
cudaError_t launch_grid_slopes(const GridGeometry& geometry, int dtype, const void* grads, const void* in,
                               const void* grid, void* by_input, void* by_grid, cudaStream_t stream);

// Which coordinates of a line draw on coordinate i, and with what weights: entries [begin[i], begin[i + 1]).
struct GatheredLine {
  int64_t input, output;
  const int64_t *begin, *at;
  const double* weight;
};
// grads [planes, output of depth, height, width], out of their inputs, packed; also complex dtypes. Summed in one
// order.
cudaError_t launch_gather_lines(const GatheredLine (&lines)[3], int64_t planes, int dtype, const void* grads, void* out,
                                cudaStream_t stream);

}  // namespace sconce::cuda
