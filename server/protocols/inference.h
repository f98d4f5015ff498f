// Inference: one request to a model, from its body to its answer. Lives in its connection and is reused, so that a
// request takes no memory after warm-up. Confined to the connection's thread, but for finished().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "server/batching/request_queue.h"
#include "server/http/response.h"
#include "server/memory/request_memory.h"
#include "server/models/served_model.h"
#include "server/protocols/infer_codec.h"
#include "server/protocols/trace_tensor.h"

namespace sconce::server {

class Inference final : public QueuedRequest {
 public:
  enum class Form : int8_t { kInfer, kCall, kGenerate, kGenerateStream, kPredict };
  using Clock = std::chrono::steady_clock;
  // Called when a queued run is over, on any thread. Must not throw.
  using Notify = void (*)(void* context) noexcept;

  Inference(size_t thread, Notify notify, void* context, RequestBudget* budget)
      : thread_(thread), notify_(notify), context_(context), scratch_(budget) {}

  // A request that came at `start`. base64: how a call's answer has its tensors.
  void begin(std::shared_ptr<ServedModel> model, Form form, bool base64, Clock::time_point start) noexcept;
  uint64_t most_body_bytes() const noexcept { return model_->most_body_bytes(); }
  // Reads it. Errors of the codecs. Any thread, as is encode(): nobody else may look at the request meanwhile.
  void decode(const BodyBuffer& body, std::optional<uint64_t> json_length, const SharedMemory* shared_memory);
  // True: the run is over. False: it was queued, and `notify` will be called. kQueueFull, errors of Model.
  bool run();
  // The request is of no interest any more. True: it was still waiting, and `notify` will not be called.
  bool cancel() noexcept { return model_->cancel(*this); }
  // From the start; max: none.
  Clock::time_point deadline() const noexcept;
  // After the run. Throws the run's error.
  void finish_run();
  // Then: whether writing the answer takes long. compressed: all of it will be.
  bool has_long_answer(bool compressed) const noexcept;
  void encode(Response& response);
  // The answer stands: counts the request.
  void succeed();
  // An error's text as the client shall read it: with the tensor's name over HTTP in the place of its number and the
  // generated code's name, "input 1 (arg1_1)".
  std::string explain(std::string message) const;
  // For a trace. A time is zero if the request did not come so far.
  struct Timeline {
    Clock::time_point decoded{}, run_done{};
    std::chrono::nanoseconds queue{}, compute{};
  };
  Timeline timeline() const noexcept;
  // Adds what a trace says of tensors: after decode(), after encode().
  void trace_inputs(size_t most_elements, std::vector<TraceTensor>& to) const;
  void trace_outputs(size_t most_elements, std::vector<TraceTensor>& to) const;
  // Counts a request that failed, if there is one.
  void fail(ErrorCode code) noexcept;
  // Lets go of all tensors and of the model. The answer has been sent.
  void clear() noexcept;

  // Frees memory beyond `keep` bytes. No request is under way.
  void trim(size_t keep) noexcept { scratch_.trim(keep); }
  size_t capacity() const noexcept { return scratch_.capacity(); }

 private:
  void ran() override;
  void finished() noexcept override;
  void leave() noexcept;
  void fetch_outputs();

  const size_t thread_;
  const Notify notify_;
  void* const context_;

  std::shared_ptr<ServedModel> model_;
  Form form_ = Form::kInfer;
  bool base64_ = false;
  bool here_ = false;  // holds a place of the model
  InferRequest request_;
  std::vector<Tensor> results_;
  TensorScratch scratch_;
  Clock::time_point start_, decoded_, run_done_;
};

}  // namespace sconce::server
