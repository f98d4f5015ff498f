// Call: a request to a model, the same for every protocol: waiting until the model is loaded, choosing the weights, the
// run, its time limit, its trace and its counters. The protocol's class (HttpCall, GrpcCall) decodes into and encodes
// from inference(), and words the messages for its client.
//
//   kNone --find()--> kLoader --notice--> kNone      the model is being loaded: call find() again
//   kNone --choose_weights()--> kReader --> kNone    a weight set is read from disk: take_weights()
//   kNone --run()--> kModel --> kNone                the run, or the decode loop, has ended: finish_run()
//
// The thread that holds the call reports its end with `notify`; then noticed() takes the call back. A decode loop whose
// answer is streamed holds the call meanwhile: take_tokens(). Used by one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/admission.h"
#include "server/codecs/inference.h"
#include "server/registry/on_demand.h"
#include "server/registry/repository.h"
#include "server/support/memory/request_budget.h"
#include "server/support/request_id.h"
#include "server/telemetry/telemetry.h"
#include "server/telemetry/traces/trace.h"

namespace sconce::server::api {

class Call {
 public:
  using Clock = std::chrono::steady_clock;
  // The thread that holds the call.
  enum class Holder : int8_t {
    kNone,    // the protocol's
    kLoader,  // a thread of LoadQueue, which loads the model
    kReader,  // the thread that reads the weights
    kModel,   // the model, in its queue or on a replica thread
  };

  // thread: index of the counters. notify: called on any thread when a holder releases the call; must not throw.
  Call(Admission& admission, telemetry::Telemetry& telemetry, size_t thread, codecs::Inference::Notify notify,
       void* context)
      : admission_(admission), telemetry_(telemetry), inference_(thread, notify, context, &admission.request_memory) {
    load_.notify = notify;
    load_.context = context;
  }

  // Fields of a request's header, for any request. Empty: absent.
  struct Head {
    std::string_view request_id, traceparent, weights, affinity;
  };
  // deadline: set by the client.
  void begin(const Head& head, RequestId& id, Clock::time_point start,
             Clock::time_point deadline = Clock::time_point::max());

  // The model of a request, as named in its path or message. set: named weight set; empty: none.
  struct Target {
    std::string_view model, version, set;
  };
  // Finds the model. Empty: the model is being loaded (kLoader). kNotFound, kUnavailable,
  // kQueueFull, and the error of the last load if it failed just now.
  registry::ModelUse find(const registry::Catalog& catalog, size_t thread, const Target& target);
  // Waits until the model is loaded, also for requests other than inference. limited: the wait has the time limit of
  // requests; otherwise it has none.
  void wait_for_load(std::string_view model, bool limited = true);
  // After kLoader: throws if the model could not be loaded.
  void check_load();
  // Starts the inference; decode it next. base64: the form of tensors in the answer.
  void open(registry::ModelUse model, const Target& target, codecs::Inference::Form form, bool base64);
  // Call this after decoding. True: the weights are ready. False: kReader. Errors of Inference::choose_weights().
  bool choose_weights(const RequestId& id);
  void take_weights() { inference_.take_weights(); }
  // True: the run has ended. False: kModel. Errors of Inference::run().
  bool run();
  scheduling::DecodeLoop::Look take_tokens(size_t most);
  void finish_run() { inference_.finish_run(); }
  // Call this after encoding, before the answer is counted.
  void trace_outputs();
  // Reserves memory for a large answer of `bytes` bytes before it is sent, because its client may read it slowly.
  // kTooLarge, kUnavailable.
  void hold_answer(size_t bytes);
  // Counts and logs the failure.
  Failure fail(const std::exception_ptr& problem);
  void fail(ErrorCode code) noexcept { inference_.fail(code); }

  Holder holder() const noexcept { return holder_; }
  bool running() const noexcept { return holder_ == Holder::kModel; }
  bool loading() const noexcept { return holder_ == Holder::kLoader; }
  // The holder's deadline; max(): none.
  Clock::time_point deadline() const noexcept { return loading() ? load_deadline_ : inference_.deadline(); }
  // Static text for the client when deadline() has passed.
  const char* late_message() const noexcept;
  // Call this after a notice. Returns the holder, which has released the call unless it makes tokens
  // for an answer in pieces.
  Holder noticed() noexcept;
  // Call this after the notice of an abandoned call. False: another notice follows.
  bool take_back() noexcept;
  // Returns true if the call was still waiting and no other thread holds it.
  bool cancel() noexcept;

  codecs::Inference& inference() noexcept { return inference_; }
  const codecs::Inference& inference() const noexcept { return inference_; }
  // Whether the call is traced.
  bool traced() const noexcept { return static_cast<bool>(traced_); }
  // Records the trace of an answered call. record: the protocol's part; its encoding ended at `encoded`.
  void record(telemetry::TraceRecord record, const RequestId& id, Clock::time_point encoded);
  // Ends the call; its memory is kept for the next call. kNone only.
  void clear() noexcept;
  // Frees the memory of an answer that was sent.
  void drop_answer() noexcept { answer_room_.give_back(); }

 private:
  registry::OnDemand* on_demand() const noexcept;

  Admission& admission_;
  telemetry::Telemetry& telemetry_;
  Holder holder_ = Holder::kNone;
  Clock::time_point start_, client_deadline_ = Clock::time_point::max(), load_deadline_;
  std::string weights_, affinity_;                      // from the header
  std::string model_, version_;                         // of open()
  std::optional<telemetry::TraceParent> trace_parent_;  // the client's own trace context
  telemetry::TraceLevels traced_;
  std::vector<codecs::TraceTensor> trace_tensors_;
  codecs::Inference inference_;
  registry::LoadQueue::Waiter load_;
  BudgetShare answer_room_;
};

}  // namespace sconce::server::api
