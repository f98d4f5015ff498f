// Inference: one request to a model, from its body to its answer, in every protocol. A connection has one and reuses
// it, so that a request needs no new memory after warm-up. Used by one thread at a time, except finished().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "server/codecs/infer_codec.h"
#include "server/codecs/tensor_request.h"
#include "server/codecs/trace_tensor.h"
#include "server/http/response.h"
#include "server/registry/decode_loop.h"
#include "server/registry/model_use.h"
#include "server/registry/served_model.h"
#include "server/scheduling/batching/request_queue.h"
#include "server/support/failure.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server {

class Inference final : public QueuedRequest {
 public:
  // kInferStream: an infer whose model may answer several times.
  enum class Form : int8_t { kInfer, kCall, kGenerate, kGenerateStream, kPredict, kInferStream };
  using Clock = std::chrono::steady_clock;
  // Called on any thread when a queued run is over. Must not throw.
  using Notify = void (*)(void* context) noexcept;

  Inference(size_t thread, Notify notify, void* context, RequestBudget* budget)
      : thread_(thread), notify_(notify), context_(context), budget_(budget), scratch_(budget) {}

  // The thread whose counters the next steps use, where that is not always the same one.
  void use_thread(size_t thread) noexcept { thread_ = thread; }
  // Starts a request that came at `start`. base64: the form of tensors in a call's answer.
  void begin(ModelUse model, Form form, bool base64, Clock::time_point start) noexcept;
  uint64_t most_body_bytes() const noexcept { return model_->most_body_bytes(); }
  // Decodes the body, and throws the errors of the codecs. May run on any thread, like encode(); nobody else may use
  // the request meanwhile.
  void decode(const BodyBuffer& body, std::optional<uint64_t> json_length, const SharedMemory* shared_memory);
  // The same for a request that has no body.
  void decode(const TensorRequest& request, const SharedMemory* shared_memory);
  // The set of weights that the path and the header name; empty: they name none. kInvalidArgument if they differ.
  void ask_for(std::string_view in_path, std::string_view in_header);
  // Chooses the set after decode(). key: keeps requests that name none on one of the model's routes; empty: the
  // request's id does. True: it is there. False: it is being read, and `notify` will be called; then call
  // take_weights(). kNotFound; kInvalidArgument if body and path or header differ.
  bool choose_weights(std::string_view key);
  // Throws what reading the set threw.
  void take_weights();
  // True: the run is over. False: it was queued, and `notify` will be called. kQueueFull, errors of Model.
  bool run();
  // Cancels a queued request, whose client has left. Returns true if it was still waiting, or a loop that waited for
  // its client; `notify` is then not called.
  bool cancel() noexcept;
  // After a notice to whoever called cancel(): false, if another one comes.
  bool let_go() noexcept { return !loops() || loop_->let_go(); }
  // Whether the request is a loop, and whether it is answered piece by piece as it goes on.
  bool loops() const noexcept { return plan_ != nullptr; }
  bool streams() const noexcept { return plan_ != nullptr && form_ != Form::kGenerate; }
  // Of a stream, after run() and each notice, and when an answer has gone: takes the tokens there are, and with kOver
  // the loop has let go. encode_events() and encode(TensorAnswer) then write these.
  DecodeLoop::Look take_tokens(size_t most);
  // Returns the error by which the loop ended; throws it if nothing was answered before.
  std::optional<Failure> encode_events(Response& response);
  // After begin(): the client itself waits no longer than that.
  void limit_deadline(Clock::time_point deadline) noexcept { client_deadline_ = deadline; }
  // max: no deadline.
  Clock::time_point deadline() const noexcept;
  // Call this after the run. Throws the run's error.
  void finish_run();
  // After that: whether writing the answer takes long. compressed: all of it will be.
  bool has_long_answer(bool compressed) const noexcept;
  void encode(Response& response);
  void encode(TensorAnswer& answer);
  // Counts the request; its answer is ready.
  void succeed();
  // When that was; zero before, and if the answer is an error.
  Clock::time_point answered() const noexcept { return answered_; }
  // An error's text for the client: a tensor's number and generated name, "input 1 (arg1_1)", become its HTTP name.
  std::string explain(std::string message) const;
  // Times for a trace; zero for steps that did not happen.
  struct Timeline {
    Clock::time_point decoded{}, run_done{};
    std::chrono::nanoseconds queue{}, gather{}, compute{};
    int64_t version = -1;               // of the model; -1: there is none
    std::span<const StepTime> steps{};  // of a pipeline, if trace_steps() asked for them; until clear()
  };
  Timeline timeline() const noexcept;
  // After decode(): the timeline will have the steps of a pipeline.
  void trace_steps() noexcept { step_times = &step_times_; }
  // Writes the times of an answered request, in milliseconds, as the answer's Server-Timing field.
  void tell_times(Response& response) const noexcept;
  // Adds tensors to a trace, after decode() and after encode().
  void trace_inputs(size_t most_elements, std::vector<TraceTensor>& to) const;
  void trace_outputs(size_t most_elements, std::vector<TraceTensor>& to) const;
  // Counts a failed request, if there is one.
  void fail(ErrorCode code) noexcept;
  // The same, and what its client is told.
  Failure fail(const std::exception_ptr& problem);
  // After the answer was sent: shows it to those who watch the model's answers.
  void show() const noexcept;
  // Drops all tensors and the model, after the answer was sent.
  void clear() noexcept;

  // Frees memory beyond `keep` bytes. No request may be under way.
  void trim(size_t keep) noexcept {
    scratch_.trim(keep);
    if (loop_) loop_->trim(keep);
  }
  size_t capacity() const noexcept { return scratch_.capacity(); }

 private:
  void ran() override;
  void finished() noexcept override;
  void leave() noexcept;
  void fetch_outputs();
  void prepare_results();
  void check_sequence() const;
  void run_loop();
  void end_loop();
  std::optional<std::string_view> set_of_step() const noexcept;

  size_t thread_;
  const Notify notify_;
  void* const context_;
  RequestBudget* const budget_;

  ModelUse model_;
  Form form_ = Form::kInfer;
  bool base64_ = false;
  bool here_ = false;  // has a permit of the model
  InferRequest request_;
  std::string wanted_;              // ask_for()
  ModelSets::Choice chosen_;        // of the run; empty: the active set
  ModelSets::Waiter reading_;       // while the set is read
  Sequences::Step step_;            // while it is queued or runs as a step of a sequence
  const LoopPlan* plan_ = nullptr;  // of a request that loops
  std::unique_ptr<DecodeLoop> loop_;
  std::vector<int64_t> tokens_;  // that were taken, and are to be answered
  size_t answered_tokens_ = 0;   // before these
  DecodeLoop::Look look_ = DecodeLoop::Look::kWait;
  int64_t told_[2] = {};  // a token and its number, as tensors
  std::vector<Tensor> results_;
  std::vector<StepTime> step_times_;
  TensorScratch scratch_;
  Clock::time_point start_, decoded_, run_done_, answered_;  // answered_: zero until succeed()
  Clock::time_point client_deadline_;
};

}  // namespace sconce::server
