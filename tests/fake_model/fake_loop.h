// The fake model that is a step of a loop: a token [B, 1] int64 and a state [B, 4] float32 to logits [B, kLogits]
// float32 and the next state. Numbers are whole, so that every machine has the same, and many logits are equal.
#pragma once

#include <cstdint>

#include "fake_abi.h"

namespace fake {

inline constexpr int64_t kLogits = 200, kLoopState = 4;

// Steals the inputs. device_type: of all tensors.
void run_loop(AtenTensorHandle* inputs, AtenTensorHandle* outputs, int32_t device_type, int32_t device_index);

}  // namespace fake
