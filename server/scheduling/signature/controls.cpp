#include "server/scheduling/signature/controls.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "sconce/check.h"

namespace sconce::server::scheduling {
namespace {

template <class T>
void fill_all(const Tensor& tensor, T value) {
  std::fill_n(tensor.data_as<T>(), tensor.numel(), value);
}

template <class T>
void fill_id(const Tensor& tensor, uint64_t number) {
  SCONCE_CHECK(number <= static_cast<uint64_t>(std::numeric_limits<T>::max()), kInvalidArgument, "sequence_id ", number,
               " is more than the model's input for it can hold, ", std::numeric_limits<T>::max());
  fill_all(tensor, static_cast<T>(number));
}

void fill_flag(const ControlInput& control, bool set, const Tensor& tensor) {
  const double value = set ? control.on : control.off;
  if (tensor.dtype() == DType::kBool)
    fill_all(tensor, value != 0);
  else if (tensor.dtype() == DType::kInt32)
    fill_all(tensor, static_cast<int32_t>(value));
  else
    fill_all(tensor, static_cast<float>(value));
}

}  // namespace

std::string_view control_kind_name(ControlInput::Kind kind) noexcept {
  constexpr std::string_view kNames[] = {"CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_READY",
                                         "CONTROL_SEQUENCE_CORRID"};
  return kNames[static_cast<size_t>(kind)];
}

bool can_be_control(ControlInput::Kind kind, DType dtype) noexcept {
  if (kind != ControlInput::Kind::kId)
    return dtype == DType::kInt32 || dtype == DType::kFloat32 || dtype == DType::kBool;
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kUInt64 || dtype == DType::kUInt32;
}

void fill_control(const ControlInput& control, const SequenceParameters& step, const Tensor& tensor) {
  if (control.kind == ControlInput::Kind::kId) {
    SCONCE_CHECK(step.id.text.empty(), kInvalidArgument,
                 "sequence_id must be a number, because the model takes it as an input, got a string");
    switch (tensor.dtype()) {
      case DType::kInt32:
        return fill_id<int32_t>(tensor, step.id.number);
      case DType::kUInt32:
        return fill_id<uint32_t>(tensor, step.id.number);
      case DType::kUInt64:
        return fill_id<uint64_t>(tensor, step.id.number);
      default:
        return fill_id<int64_t>(tensor, step.id.number);
    }
  }
  const bool set = control.kind == ControlInput::Kind::kReady ||
                   (control.kind == ControlInput::Kind::kStart && step.start) ||
                   (control.kind == ControlInput::Kind::kEnd && step.end);
  fill_flag(control, set, tensor);
}

void fill_control_idle(const ControlInput& control, const Tensor& tensor) {
  if (control.kind == ControlInput::Kind::kId)
    fill_control(control, {}, tensor);
  else
    fill_flag(control, false, tensor);
}

}  // namespace sconce::server::scheduling
