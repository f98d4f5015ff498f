#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/layers/rnn_kernels.h"

namespace sconce::cuda {
namespace {

template <class T, class A>
void lstm_cell_as(const LstmCell& cell, cudaStream_t stream) {
  const LstmCell c = cell;
  grid_loop(c.batch * c.hidden, stream, [=] __device__(int64_t i) {
    const int64_t row = i / c.hidden, column = i % c.hidden, first = row * 4 * c.hidden + column;
    const T* from_input = static_cast<const T*>(c.input_gates);
    const T* from_hidden = static_cast<const T*>(c.hidden_gates);
    const T* input_bias = static_cast<const T*>(c.input_bias);
    const T* hidden_bias = static_cast<const T*>(c.hidden_bias);
    A gates[4];
    for (int g = 0; g < 4; ++g) {
      const int64_t at = first + g * c.hidden, bias_at = column + g * c.hidden;
      gates[g] = widened(from_input[at]) + widened(from_hidden[at]);
      if (input_bias) gates[g] += widened(input_bias[bias_at]) + widened(hidden_bias[bias_at]);
      gates[g] = g == 2 ? tanh(gates[g]) : A(1) / (A(1) + exp(-gates[g]));
    }
    const A state = gates[1] * widened(static_cast<const T*>(c.cx)[i]) + gates[0] * gates[2];
    static_cast<T*>(c.cy)[i] = narrowed<T>(state);
    static_cast<T*>(c.hy)[i] = narrowed<T>(gates[3] * tanh(state));
    T* kept = static_cast<T*>(c.kept);
    for (int g = 0; g < 4; ++g) kept[first + g * c.hidden] = narrowed<T>(gates[g]);
  });
}

}  // namespace

void launch_lstm_cell(const LstmCell& cell, int dtype, cudaStream_t stream) {
  switch (dtype) {
    case 5:
      return lstm_cell_as<__half, float>(cell, stream);
    case 6:
      return lstm_cell_as<float, float>(cell, stream);
    case 7:
      return lstm_cell_as<double, double>(cell, stream);
    default:
      return lstm_cell_as<__nv_bfloat16, float>(cell, stream);
  }
}

}  // namespace sconce::cuda
