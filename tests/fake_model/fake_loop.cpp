#include "fake_loop.h"

#include <stdexcept>
#include <utility>

#include "fake_container.h"

namespace fake {
namespace {

void check(AOTITorchError error) {
  if (error != 0) throw std::runtime_error("fake loop: a call failed");
}

Handle made(int64_t rows, int64_t columns, int32_t device_type, int32_t device_index) {
  const int64_t sizes[] = {rows, columns}, strides[] = {columns, 1};
  AtenTensorHandle handle;
  check(aoti_torch_empty_strided(2, sizes, strides, aoti_torch_dtype_float32(), device_type, device_index, &handle));
  return Handle(handle);
}

}  // namespace

void run_loop(AtenTensorHandle* inputs, AtenTensorHandle* outputs, int32_t device_type, int32_t device_index) {
  const Handle token(std::exchange(inputs[0], nullptr)), state(std::exchange(inputs[1], nullptr));
  for (const Handle* input : {&token, &state}) {
    int32_t type;
    check(aoti_torch_get_device_type(input->get(), &type));
    if (type != device_type) throw std::runtime_error("fake loop: an input is on another device");
  }
  ++knobs().runs;
  wait_while_held();
  int64_t rows;
  check(aoti_torch_get_size(token.get(), 0, &rows));
  Handle logits = made(rows, kLogits, device_type, device_index),
         next = made(rows, kLoopState, device_type, device_index);
  void* tokens;
  check(aoti_torch_get_data_ptr(token.get(), &tokens));
  for (int64_t r = 0; r < rows; ++r) {
    const float* const before = state.data() + r * kLoopState;
    float* const after = next.data() + r * kLoopState;
    const auto mixed = static_cast<int64_t>(before[0]) * 31 + static_cast<int64_t>(before[3]) * 7 +
                       static_cast<const int64_t*>(tokens)[r] + 1;
    after[0] = static_cast<float>(mixed % 8191);
    for (int64_t i = 1; i < kLoopState; ++i) after[i] = before[i - 1];
    for (int64_t i = 0; i < kLogits; ++i)
      logits.data()[r * kLogits + i] = static_cast<float>((mixed % 8191 + 3) * (37 * i + 11) % 61) / 8;
  }
  outputs[0] = logits.release();
  outputs[1] = next.release();
}

}  // namespace fake
