// One layer and direction of a recurrent network. Matches aten::mkldnn_rnn_layer (aten/src/ATen/native/mkldnn/RNN.cpp),
// torch 2.15.
#pragma once

#include <array>

#include "sconce/tensor.h"

namespace sconce::cpu {

// LSTM (mode 2), the only one that PyTorch runs this way. input [T, N, I]; weight0 [4H, I] and weight1 [4H, H], plain
// or opaque, gates in the order input, forget, cell, output; weight2 and weight3 [4H] biases, looked at only with
// has_biases; hx_ and cx_ [1, N, H]. Any strides; float32, float16 or bfloat16, sums and states float32.
// Returns output [T, N, H], hy and cy like hx_ and cx_, and what training would keep: nothing. `reverse` goes from the
// last step to the first. The layer is told about the network it belongs to (layers, directions, batch_first) but
// does not depend on it. kInvalidArgument for shapes that do not fit, kUnsupported for other modes and packed
// sequences.
std::array<Tensor, 4> mkldnn_rnn_layer(const Tensor& input, const Tensor& weight0, const Tensor& weight1,
                                       const Tensor& weight2, const Tensor& weight3, const Tensor& hx_,
                                       const Tensor& cx_, bool reverse, IntSpan batch_sizes, int64_t mode,
                                       int64_t hidden_size, int64_t num_layers, bool has_biases, bool bidirectional,
                                       bool batch_first, bool train);

}  // namespace sconce::cpu
