// Inference: one request to a model, from its body to its answer, in every protocol. A connection has one and reuses
// it, so that a request allocates no memory after warm-up. Used by one thread at a time, except finished().
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
#include "server/registry/model_use.h"
#include "server/registry/served_model.h"
#include "server/scheduling/batching/request_queue.h"
#include "server/scheduling/decoding/decode_loop.h"
#include "server/support/failure.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::codecs {

class Inference final : public scheduling::QueuedRequest {
 public:
  // kInferStream: an infer request whose model may answer several times.
  enum class Form : int8_t { kInfer, kCall, kGenerate, kGenerateStream, kPredict, kInferStream };
  using Clock = std::chrono::steady_clock;
  // Called on any thread when a queued run has ended. Must not throw.
  using Notify = void (*)(void* context) noexcept;

  Inference(size_t thread, Notify notify, void* context, RequestBudget* budget)
      : thread_(thread), notify_(notify), context_(context), budget_(budget), scratch_(budget) {}

  // The thread whose counters the next steps use, if the thread changes.
  void use_thread(size_t thread) noexcept { thread_ = thread; }
  // Starts a request that arrived at `start`. base64: the form of tensors in a call's answer.
  void begin(registry::ModelUse model, Form form, bool base64, Clock::time_point start) noexcept;
  uint64_t most_body_bytes() const noexcept { return model_->most_body_bytes(); }
  // Decodes the body. Errors of the codecs. May run on any thread, like encode(), while no other thread uses the
  // request.
  void decode(const BodyBuffer& body, std::optional<uint64_t> json_length, const SharedMemory* shared_memory);
  // Likewise for a request without a body.
  void decode(const TensorRequest& request, const SharedMemory* shared_memory);
  // The weight set that the path and the header name; empty: none. kInvalidArgument if they differ.
  void ask_for(std::string_view in_path, std::string_view in_header);
  // Chooses the weight set after decode(). key: requests that name no set and have the same key get the same route;
  // empty: the request's id is the key. True: the set is ready. False: the set is being read, and `notify` will be
  // called; then call take_weights(). kNotFound; kInvalidArgument if the body differs from the path or header.
  bool choose_weights(std::string_view key);
  // Throws the error of reading the set.
  void take_weights();
  // True: the run has ended. False: it was queued, and `notify` will be called. kQueueFull, errors of Model.
  bool run();
  // Cancels a queued request whose client has disconnected. Returns true if it was still waiting, or a decode loop was
  // waiting for its client; `notify` is then not called.
  bool cancel() noexcept;
  // After cancel(), call this on each notice. False: another notice will come.
  bool let_go() noexcept { return !loops() || loop_->let_go(); }
  // Whether the request is a decode loop, and whether its answer is streamed.
  bool loops() const noexcept { return plan_ != nullptr; }
  bool streams() const noexcept { return plan_ != nullptr && form_ != Form::kGenerate; }
  // For a stream, after run(), after each notice, and when an answer was sent: takes the available tokens; with kOver
  // the loop has released the request. Then encode_events() and encode(TensorAnswer) write these tokens.
  scheduling::DecodeLoop::Look take_tokens(size_t most);
  // Returns the error that ended the loop; throws it if nothing was answered before.
  std::optional<Failure> encode_events(http::Response& response);
  // Call this after begin(). The client waits no longer than `deadline`.
  void limit_deadline(Clock::time_point deadline) noexcept { client_deadline_ = deadline; }
  // max: no deadline.
  Clock::time_point deadline() const noexcept;
  // Call this after the run. Throws the run's error.
  void finish_run();
  // Call this after finish_run(). Whether encoding the answer takes long. compressed: the whole answer will be
  // compressed.
  bool has_long_answer(bool compressed) const noexcept;
  void encode(http::Response& response);
  void encode(TensorAnswer& answer);
  // Counts the request as successful; its answer is ready.
  void succeed();
  // Time of succeed(); zero before it, and if the answer is an error.
  Clock::time_point answered() const noexcept { return answered_; }
  // Converts an error message for the client: a tensor's number and generated name, "input 1 (arg1_1)", become its HTTP
  // name.
  std::string explain(std::string message) const;
  // Times for a trace; zero for skipped steps.
  struct Timeline {
    Clock::time_point decoded{}, run_done{};
    std::chrono::nanoseconds queue{}, gather{}, compute{};
    int64_t version = -1;                           // of the model; -1: no model
    std::span<const scheduling::StepTime> steps{};  // of a pipeline, after trace_steps(); valid until clear()
  };
  Timeline timeline() const noexcept;
  // Call this after decode(). The timeline will include the steps of a pipeline.
  void trace_steps() noexcept { step_times = &step_times_; }
  // Writes the times of an answered request, in milliseconds, to the answer's Server-Timing field.
  void tell_times(http::Response& response) const noexcept;
  // Adds tensors to a trace. Call trace_inputs() after decode(), and trace_outputs() after encode().
  void trace_inputs(size_t most_elements, std::vector<TraceTensor>& to) const;
  void trace_outputs(size_t most_elements, std::vector<TraceTensor>& to) const;
  // Counts a failed request, if a request has begun.
  void fail(ErrorCode code) noexcept;
  // Likewise; returns the failure for the client.
  Failure fail(const std::exception_ptr& problem);
  // Call this after the answer was sent. Passes it to the watchers of the model's answers.
  void show() const noexcept;
  // Call this after the answer was sent. Drops all tensors and the model.
  void clear() noexcept;

  // Frees memory beyond `keep` bytes. No request may be in progress.
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

  registry::ModelUse model_;
  Form form_ = Form::kInfer;
  bool base64_ = false;
  bool here_ = false;  // holds a permit of the model
  InferRequest request_;
  std::string wanted_;                          // ask_for()
  scheduling::ModelSets::Choice chosen_;        // for the run; empty: the active set
  scheduling::ModelSets::Waiter reading_;       // while the set is being read
  scheduling::Sequences::Step step_;            // while it is queued or runs as a step of a sequence
  const scheduling::LoopPlan* plan_ = nullptr;  // of a request that is a decode loop
  std::unique_ptr<scheduling::DecodeLoop> loop_;
  std::vector<int64_t> tokens_;  // taken from the loop and not yet answered
  size_t answered_tokens_ = 0;   // answered before tokens_
  scheduling::DecodeLoop::Look look_ = scheduling::DecodeLoop::Look::kWait;
  int64_t told_[2] = {};  // a token and its number, as tensors
  std::vector<Tensor> results_;
  std::vector<scheduling::StepTime> step_times_;
  TensorScratch scratch_;
  Clock::time_point start_, decoded_, run_done_, answered_;  // answered_: zero until succeed()
  Clock::time_point client_deadline_;
};

}  // namespace sconce::server::codecs
