// Controls: inputs of a sequence model that the server fills, named as in Triton's sequence_batching.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::server::scheduling {

// A client's name for a sequence: a number or a text. If both are empty, there is none.
struct SequenceId {
  static constexpr size_t kMaxText = 128;  // bytes, as in Triton
  uint64_t number = 0;
  std::string text;
  bool own = false;  // chosen by the server; no client has this number
  bool given() const noexcept { return number != 0 || !text.empty(); }
};

// A request as a step of a sequence.
struct SequenceParameters {
  SequenceId id;
  bool start = false, end = false;
  bool rows = false;  // it may save rows of its state (SequenceStep::rows)
  void clear() noexcept {
    id.number = 0;
    id.text.clear();
    id.own = false;
    start = end = rows = false;
  }
};

struct ControlInput {
  enum class Kind : int8_t { kStart, kEnd, kReady, kId };
  Kind kind = Kind::kReady;
  size_t input = 0;        // index of the model's input
  double off = 0, on = 1;  // of kStart, kEnd and kReady
};

// Triton's name: "CONTROL_SEQUENCE_START".
std::string_view control_kind_name(ControlInput::Kind kind) noexcept;
// Whether a control may have elements of this dtype.
bool can_be_control(ControlInput::Kind kind, DType dtype) noexcept;
// Writes the control's value for this step into the tensor. kInvalidArgument for an id that the dtype cannot hold.
void fill_control(const ControlInput& control, const SequenceParameters& step, const Tensor& tensor);
// Likewise for a row without a step: not READY, of no sequence.
void fill_control_idle(const ControlInput& control, const Tensor& tensor);

}  // namespace sconce::server::scheduling
