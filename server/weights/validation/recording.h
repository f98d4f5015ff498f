// Recording: a number of live answers of a model, as a golden file. Thread-safe.
//
// Answers of the active set are recorded, in the order in which they are sent, until other weights become active; those
// of named sets are passed over. What is recorded of an input is what the run left in it, so models that write their
// inputs cannot be recorded: opening the file finds that out by running the requests again.
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

namespace sconce::server {

class Recording final : public AnswerWatcher, public std::enable_shared_from_this<Recording> {
 public:
  enum class State : int8_t { kRunning, kComplete, kFull, kEnded };  // kFull: the limit was reached first
  struct Limits {
    uint64_t requests = 0, bytes = 0;
  };

  // kFailedPrecondition for a model whose answers depend on earlier requests, kUnsupported for a dtype that safetensors
  // lacks; errors of Model::rehearse. The model, its interface and the tap outlive the recording.
  Recording(const ModelSignature& interface, const Model& model, AnswerTap& tap, Limits limits);
  void start();          // kBusy if too many watch the model
  void stop() noexcept;  // records no more; what there is can be opened
  State state() const;

  void saw(const SeenAnswer& answer) noexcept override;

  // A file whose tensors are named NNNNNN/inputs/NAME and NNNNNN/outputs/NAME. kBusy while it is running;
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
    std::vector<Part> parts;  // the inputs, then the outputs
  };
  class File;

  Answer copy_of(const SeenAnswer& answer, uint64_t number) const;
  void check_inputs() SCONCE_REQUIRES(mutex_);

  const ModelSignature& interface_;
  AnswerTap& tap_;
  const Limits limits_;
  const uint64_t generation_;
  mutable Mutex mutex_;
  State state_ SCONCE_GUARDED_BY(mutex_) = State::kRunning;
  std::unique_ptr<Rehearsal> rehearsal_ SCONCE_GUARDED_BY(mutex_);  // null: the inputs were checked
  std::vector<std::shared_ptr<const Answer>> answers_ SCONCE_GUARDED_BY(mutex_);
  uint64_t bytes_ SCONCE_GUARDED_BY(mutex_) = 0, passed_over_ SCONCE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sconce::server
