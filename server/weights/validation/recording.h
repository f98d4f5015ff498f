// Recording: a number of a model's live answers, written as a golden file. Thread-safe.
//
// Records the answers of the active set in the order in which they are sent, until other weights become active. Answers
// of named sets are skipped. An input is recorded in its state after the run, so models that write their inputs cannot
// be recorded: open() detects them by running the requests again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "sconce/weight_sources.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/json_document.h"
#include "server/support/memory/request_memory.h"
#include "server/weights/validation/answer_tap.h"

namespace sconce::server::weights {

class Recording final : public AnswerWatcher, public std::enable_shared_from_this<Recording> {
 public:
  enum class State : int8_t { kRunning, kComplete, kFull, kEnded };  // kFull: the limit was reached first
  struct Limits {
    uint64_t requests = 0, bytes = 0;
  };

  // kFailedPrecondition for a model whose answers depend on earlier requests, kUnsupported for a dtype that safetensors
  // lacks; errors of Model::rehearse. The model, its interface and the tap outlive the recording.
  Recording(const scheduling::ModelSignature& interface, const Model& model, AnswerTap& tap, Limits limits);
  void start();          // kBusy if the model has too many watchers
  void stop() noexcept;  // stops recording; the recorded answers can be opened
  State state() const;

  void saw(const SeenAnswer& answer) noexcept override;

  // Returns a file with tensors named NNNNNN/inputs/NAME and NNNNNN/outputs/NAME. kBusy while recording;
  // kFailedPrecondition if nothing was recorded, or the model writes its inputs.
  std::unique_ptr<WeightFile> open();
  OrderedJson json() const;

 private:
  struct Part {
    WeightEntry entry;
    size_t offset, bytes;
  };
  struct Answer {
    StorageBlock block;
    std::vector<Part> parts;  // inputs, then outputs
  };
  class File;

  Answer copy_of(const SeenAnswer& answer, uint64_t number) const;
  void check_inputs() SCONCE_REQUIRES(mutex_);

  const scheduling::ModelSignature& interface_;
  AnswerTap& tap_;
  const Limits limits_;
  const uint64_t weight_version_;
  mutable Mutex mutex_;
  State state_ SCONCE_GUARDED_BY(mutex_) = State::kRunning;
  std::unique_ptr<Rehearsal> rehearsal_ SCONCE_GUARDED_BY(mutex_);  // null: the inputs were already checked
  std::vector<std::shared_ptr<const Answer>> answers_ SCONCE_GUARDED_BY(mutex_);
  uint64_t bytes_ SCONCE_GUARDED_BY(mutex_) = 0, passed_over_ SCONCE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sconce::server::weights
