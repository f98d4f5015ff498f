// Call: a request to a model, the same for every protocol: the wait until the model is loaded, the choice of weights,
// the run, its time limit, its trace and its counts. The protocol's side (HttpCall, GrpcCall) decodes into and
// encodes from inference(), and words what its client is told.
//
//   kNone --find()--> kLoader --notice--> kNone      the model is being loaded: find() again
//   kNone --choose_weights()--> kReader --> kNone    a set of weights is read from disk: take_weights()
//   kNone --run()--> kModel --> kNone                the run, or the loop, is over: finish_run()
//
// The other thread that has the call reports its end by `notify`; then noticed() takes the call back. A loop that is
// answered piece by piece keeps the call meanwhile: take_tokens(). Used by one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/codecs/inference.h"
#include "server/registry/on_demand.h"
#include "server/registry/repository.h"
#include "server/rollout/service.h"
#include "server/support/memory/request_budget.h"
#include "server/support/request_id.h"
#include "server/telemetry/traces/trace.h"

namespace sconce::server {

class Call {
 public:
  using Clock = std::chrono::steady_clock;
  // The thread that has the call.
  enum class Holder : int8_t {
    kNone,    // the protocol's
    kLoader,  // a thread of LoadQueue, which loads the model
    kReader,  // the thread that reads the weights
    kModel,   // the model, in its queue or on a replica thread
  };

  // thread: whose counters count. notify: called on any thread when a holder lets go; must not throw.
  Call(Service& service, size_t thread, Inference::Notify notify, void* context)
      : service_(service), inference_(thread, notify, context, &service.request_memory) {
    load_.notify = notify;
    load_.context = context;
  }

  // What the head of a request says, whatever it asks for. Empty: nothing.
  struct Head {
    std::string_view request_id, traceparent, weights, affinity;
  };
  // deadline: of the client itself.
  void begin(const Head& head, RequestId& id, Clock::time_point start,
             Clock::time_point deadline = Clock::time_point::max());

  // The model of a request, as its path or message names it. set: of its weights; empty: none is named.
  struct Target {
    std::string_view model, version, set;
  };
  // Finds the model. Empty: it is being loaded (kLoader). kNotFound, kUnavailable.
  ModelUse find(const Catalog& catalog, size_t thread, const Target& target);
  // Waits until the model is loaded, also for requests that are no inference. waits: at most as long as requests may;
  // otherwise without a limit.
  void wait_for_load(std::string_view model, bool limited = true);
  // After kLoader: throws why the model cannot be loaded.
  void check_load();
  // Starts the inference: then decode it. base64: the form of tensors in the answer.
  void open(ModelUse model, const Target& target, Inference::Form form, bool base64);
  // After decoding. True: the weights are there. False: kReader. Errors of Inference::choose_weights().
  bool choose_weights(const RequestId& id);
  void take_weights() { inference_.take_weights(); }
  // True: the run is over. False: kModel. Errors of Inference::run().
  bool run();
  DecodeLoop::Look take_tokens(size_t most);
  void finish_run() { inference_.finish_run(); }
  // After encoding, before the answer is counted.
  void trace_outputs();
  // Before a large answer of so many bytes is sent: its client may take long to read it. kOutOfMemory.
  void hold_answer(size_t bytes);
  // Counts and logs the failure.
  Failure fail(const std::exception_ptr& problem);
  void fail(ErrorCode code) noexcept { inference_.fail(code); }

  Holder holder() const noexcept { return holder_; }
  bool running() const noexcept { return holder_ == Holder::kModel; }
  bool loading() const noexcept { return holder_ == Holder::kLoader; }
  // When the holder's time is up; max(): never.
  Clock::time_point deadline() const noexcept { return loading() ? load_deadline_ : inference_.deadline(); }
  // Static text: why deadline() ended the call.
  const char* late_message() const noexcept;
  // After a notice: returns the holder, which has let go unless it makes tokens.
  Holder noticed() noexcept;
  // After the notice of a call that nobody waits for any more. False: another notice follows.
  bool take_back() noexcept;
  // Returns true if the call was still waiting, and no thread has it any more.
  bool cancel() noexcept;

  Inference& inference() noexcept { return inference_; }
  const Inference& inference() const noexcept { return inference_; }
  // Whether the call is traced.
  bool traced() const noexcept { return static_cast<bool>(traced_); }
  // Records the trace of an answered call. record: what the protocol knows; its encoding ended at `encoded`.
  void record(TraceRecord record, const RequestId& id, Clock::time_point encoded);
  // Ends the call; its memory stays for the next one. kNone only.
  void clear() noexcept;
  // Frees the memory of an answer that was sent.
  void drop_answer() noexcept { answer_room_.give_back(); }

 private:
  OnDemand* on_demand() const noexcept;

  Service& service_;
  Holder holder_ = Holder::kNone;
  Clock::time_point start_, client_deadline_ = Clock::time_point::max(), load_deadline_;
  std::string weights_, affinity_;           // of the head
  std::string model_, version_;              // of open()
  std::optional<TraceParent> trace_parent_;  // the client's own trace, if any
  TraceLevels traced_;
  std::vector<TraceTensor> trace_tensors_;
  Inference inference_;
  LoadQueue::Waiter load_;
  BudgetShare answer_room_;
};

}  // namespace sconce::server
