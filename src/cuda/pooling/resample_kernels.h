// Grid sampling, and gradients that gather along lines, for host code. dtype: c10::ScalarType; cudaErrorNotSupported
// for dtypes that are not floating.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/tensor/spatial/grid_taps.h"

namespace sconce::cuda {

// in [batch, channels, plane], grid [batch, places, dims], out [batch, channels, places], packed.
cudaError_t launch_grid_sample(const GridGeometry& geometry, int dtype, const void* in, const void* grid, void* out,
                               cudaStream_t stream);
// by_input (null: not wanted) is zeroed float64 or float32, summed in any order. by_grid is like grid.
cudaError_t launch_grid_slopes(const GridGeometry& geometry, int dtype, const void* grads, const void* in,
                               const void* grid, void* by_input, void* by_grid, cudaStream_t stream);

// For each coordinate i of a line, the coordinates that depend on it, and their weights: entries [begin[i], begin[i +
// 1]).
struct GatheredLine {
  int64_t input, output;
  const int64_t *begin, *at;
  const double* weight;
  int64_t most;  // entries of a coordinate
};
// From packed grads [planes, output sizes] to `out` [planes, input sizes], in a fixed order; complex dtypes too.
cudaError_t launch_gather_lines(const GatheredLine (&lines)[3], int64_t planes, int dtype, const void* grads, void* out,
                                cudaStream_t stream);

// The gradient of padding by the border: from packed grads [planes, out] to `sums` [planes, in], where `before`
// elements stand before each side of the input. In order of the coordinates.
struct PaddedLines {
  int64_t in[3], out[3], before[3];
};
cudaError_t launch_border_slopes(const PaddedLines& lines, int64_t planes, int dtype, const void* grads, void* sums,
                                 cudaStream_t stream);

}  // namespace sconce::cuda
