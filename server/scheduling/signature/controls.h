// Controls: inputs of a model of sequences that the server fills, as Triton's sequence_batching names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::server {

// What a client calls a sequence: a number, or a text. Neither: it names none.
struct SequenceId {
  static constexpr size_t kMaxText = 128;  // bytes, as Triton
  uint64_t number = 0;
  std::string text;
  bool own = false;  // the server's: no client has this number
  bool given() const noexcept { return number != 0 || !text.empty(); }
};

// A request as a step of a sequence.
struct SequenceParameters {
  SequenceId id;
  bool start = false, end = false;
  bool rows = false;  // it may set rows of its state aside (SequenceStep::rows)
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
  size_t input = 0;        // of the model
  double off = 0, on = 1;  // of kStart, kEnd and kReady
};

// Triton's name: "CONTROL_SEQUENCE_START".
std::string_view control_kind_name(ControlInput::Kind kind) noexcept;
// Whether a control may have elements of this dtype.
bool can_be_control(ControlInput::Kind kind, DType dtype) noexcept;
// Fills the tensor with what the control says in this step. kInvalidArgument for an id that the dtype cannot hold.
void fill_control(const ControlInput& control, const SequenceParameters& step, const Tensor& tensor);
// The same where there is no step: not READY, of no sequence.
void fill_control_idle(const ControlInput& control, const Tensor& tensor);

}  // namespace sconce::server
