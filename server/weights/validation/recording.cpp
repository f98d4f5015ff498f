#include "server/weights/validation/recording.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sconce/check.h"
#include "server/scheduling/signature/recorded_strides.h"
#include "server/support/enum_name.h"
#include "server/support/failure.h"

namespace sconce::server::weights {
namespace {

size_t padded(size_t bytes) noexcept { return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment; }

void check_dtypes(std::span<const TensorSpec> specs, const scheduling::TensorNames& names) {
  for (size_t i = 0; i < specs.size(); ++i)
    SCONCE_CHECK(!specs[i].dtype || !dtype_safetensors(*specs[i].dtype).empty(), kUnsupported, "safetensors has no ",
                 dtype_name(*specs[i].dtype), ", which '", names.name(i), "' is");
}

}  // namespace

class Recording::File final : public WeightFile {
 public:
  explicit File(std::vector<std::shared_ptr<const Answer>> answers) : answers_(std::move(answers)) {
    for (const auto& answer : answers_)
      for (const Part& part : answer->parts) {
        add(part.entry);
        places_.push_back(answer->block.data() + part.offset);
      }
  }
  void read(size_t entry, std::span<std::byte> out) override {
    if (entry != current_) done_ = 0;
    current_ = entry;
    SCONCE_CHECK(out.size() <= bytes(entry) - done_, kInternal, "read beyond the end of a recorded tensor");
    if (!out.empty()) std::memcpy(out.data(), places_[entry] + done_, out.size());
    done_ += out.size();
  }
  std::span<const std::byte> in_place(size_t entry) const noexcept override {
    return {places_[entry], static_cast<size_t>(bytes(entry))};
  }
  void check_whole() override {}

 private:
  const std::vector<std::shared_ptr<const Answer>> answers_;
  std::vector<const std::byte*> places_;
  size_t current_ = 0;
  uint64_t done_ = 0;
};

Recording::Recording(const scheduling::ModelSignature& interface, const Model& model, AnswerTap& tap, Limits limits)
    : interface_(interface), tap_(tap), limits_(limits), weight_version_(model.weight_version()) {
  SCONCE_CHECK(!interface.mutates_constants, kFailedPrecondition,
               "the model writes its buffers: its answers depend on the requests before");
  check_dtypes(interface.spec.inputs, interface.input_names);
  check_dtypes(interface.spec.outputs, interface.output_names);
  const MutexLock lock(mutex_);
  rehearsal_ = model.rehearse(WeightState::kActive);
}

void Recording::start() { tap_.add(shared_from_this()); }

void Recording::stop() noexcept {
  tap_.remove(*this);
  const MutexLock lock(mutex_);
  if (state_ == State::kRunning) state_ = State::kEnded;
}

Recording::State Recording::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

Recording::Answer Recording::copy_of(const SeenAnswer& answer, uint64_t number) const {
  Answer copy;
  size_t bytes = 0;
  const auto plan = [&](const Tensor& tensor, const char* side, const std::string& name) {
    copy.parts.push_back({{fmt::format("{:06}/{}/{}", number, side, name),
                           tensor.dtype(),
                           {tensor.sizes().begin(), tensor.sizes().end()}},
                          bytes,
                          tensor.bytes()});
    bytes += padded(tensor.bytes());
  };
  for (size_t i = 0; i < answer.inputs.size(); ++i) plan(answer.inputs[i], "inputs", interface_.input_names.name(i));
  for (size_t i = 0; i < answer.outputs.size(); ++i)
    if (answer.outputs[i].defined()) plan(answer.outputs[i], "outputs", interface_.output_names.name(i));
  copy.block.prepare(std::max<size_t>(bytes, 1));
  size_t part = 0;
  for (const std::span<const Tensor> tensors : {answer.inputs, answer.outputs})
    for (const Tensor& tensor : tensors)
      if (tensor.defined()) copy_to_contiguous(tensor, copy.block.data() + copy.parts[part++].offset);
  return copy;
}

void Recording::saw(const SeenAnswer& answer) noexcept {
  bool over = false;
  const bool recorded = succeeds([&] {
    const MutexLock lock(mutex_);
    if (state_ != State::kRunning) return;
    if (!answer.info.set && answer.info.weight_version > weight_version_) {
      state_ = State::kEnded;
      over = true;
      return;
    }
    if (answer.info.set || answer.info.weight_version != weight_version_ || !on_host(answer.inputs) ||
        !on_host(answer.outputs)) {
      ++passed_over_;
      return;
    }
    uint64_t bytes = 0;
    for (const std::span<const Tensor> tensors : {answer.inputs, answer.outputs})
      for (const Tensor& tensor : tensors)
        if (tensor.defined()) bytes += padded(tensor.bytes());
    if (bytes_ + bytes > limits_.bytes) {
      state_ = State::kFull;
    } else {
      answers_.push_back(std::make_shared<const Answer>(copy_of(answer, answers_.size() + 1)));
      bytes_ += bytes;
      if (answers_.size() == limits_.requests) state_ = State::kComplete;
    }
    over = state_ != State::kRunning;
  });
  if (!recorded) {
    const MutexLock lock(mutex_);
    ++passed_over_;  // no memory
  }
  if (over) tap_.remove(*this);
}

// Runs each request again and checks whether its inputs stay unchanged.
void Recording::check_inputs() {
  for (const auto& answer : answers_) {
    TensorScratch scratch;
    std::vector<Tensor> inputs, outputs(interface_.outputs.size());
    for (size_t i = 0; i < interface_.inputs.size(); ++i) {
      const Part& part = answer->parts[i];
      inputs.push_back(scheduling::copy_in_recorded_strides(answer->block.data() + part.offset, part.entry.shape,
                                                            part.entry.dtype, interface_.spec.inputs[i], scratch));
    }
    rehearsal_->run(inputs, outputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Part& part = answer->parts[i];
      const std::byte* const now = scratch.row_major(inputs[i]);
      SCONCE_CHECK(part.bytes == 0 || std::memcmp(now, answer->block.data() + part.offset, part.bytes) == 0,
                   kFailedPrecondition, "the model writes its input '", interface_.input_names.name(i),
                   "': the original inputs are lost");
    }
  }
  rehearsal_ = nullptr;
}

std::unique_ptr<WeightFile> Recording::open() {
  const MutexLock lock(mutex_);
  SCONCE_CHECK(state_ != State::kRunning, kBusy, answers_.size(), " of ", limits_.requests,
               " requests are recorded; a POST to the same path ends the recording");
  SCONCE_CHECK(!answers_.empty(), kFailedPrecondition, "no request was recorded");
  if (rehearsal_) check_inputs();
  return std::make_unique<File>(answers_);
}

OrderedJson Recording::json() const {
  const MutexLock lock(mutex_);
  return {{"state", name_of(state_, {"running", "complete", "full", "ended"})},
          {"requests", limits_.requests},
          {"recorded", answers_.size()},
          {"passed_over", passed_over_},
          {"bytes", bytes_},
          {"limit_bytes", limits_.bytes},
          {"weight_version", weight_version_},
          {"generation", weight_version_}};  // deprecated
}

}  // namespace sconce::server::weights
