// The first elements of rows in an order, without sorting the rows: on a device, for host code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sconce::cuda {

// Packed [rows, length], none is 0, length up to INT32_MAX. The first `count` of each row as a stable sort would have
// them (NaN greatest, zeros equal), but in the order they stand in, go to values and indices, packed [rows, count];
// with `last_only` the one that would come last of them alone, packed [rows].
struct SelectCall {
  int dtype;  // c10::ScalarType
  const void* in;
  int64_t rows, length, count;
  bool descending, last_only;
  void* values;
  int64_t* indices;
  int multiprocessors;  // of the device
};
// A null scratch asks for its size and does nothing else. cudaErrorNotSupported for dtypes without an order.
cudaError_t launch_select(void* scratch, size_t& scratch_bytes, const SelectCall& call, cudaStream_t stream);

}  // namespace sconce::cuda
