// The elementwise part of an LSTM step, for host code. dtype: c10::ScalarType 5, 6, 7 or 15.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sconce::cuda {

// All packed: gates [batch, 4 hidden] ordered input, forget, cell, output; biases [4 hidden], or both null; states
// [batch, hidden]. kept: the gates after activation.
struct LstmCell {
  const void *input_gates, *hidden_gates, *input_bias, *hidden_bias, *cx;
  void *hy, *cy, *kept;
  int64_t batch, hidden;
};
void launch_lstm_cell(const LstmCell& cell, int dtype, cudaStream_t stream);

}  // namespace sconce::cuda
