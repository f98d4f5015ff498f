// InferenceCall: one inference that came by gRPC, from its admission to the answer. Decisions are those of every
// protocol: access by answers/access.h, the run by protocols/inference.h. Reused from call to call.
//
//   kFree --admit--> kAdmitted --run--> kWaiting --its run is over, cancel, deadline--> kFinished --release--> kFree
//                                       kWaiting <----------- next, if the answer is not the last -- kFinished
//
// Threads of gRPC, of CallRoom and the clock take its steps, one at a time under the mutex. If the call ends while the
// model, the reader of weights or the loader of the model uses it (lent_), it stays until they let go.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/mutex.h"
#include "server/admin/service.h"
#include "server/base/alarm_clock.h"
#include "server/base/heavy_work.h"
#include "server/base/request_id.h"
#include "server/grpc/boundary.h"
#include "server/grpc/call_turn.h"
#include "server/memory/request_budget.h"
#include "server/models/on_demand.h"
#include "server/observe/traces/trace.h"
#include "server/protocols/inference.h"

namespace sconce::server {

class CallRoom;

class InferenceCall final : public GrpcInference, private AlarmClock::Alarm {
 public:
  using Clock = std::chrono::steady_clock;

  InferenceCall(CallRoom& room, AlarmClock& clock);
  ~InferenceCall() override;

  bool admit(GrpcMethod method, const GrpcCaller& caller, size_t bytes, GrpcWaiter& waiter) noexcept override;
  bool grow(size_t bytes) noexcept override;
  void run(const TensorRequest& request) noexcept override;
  void refuse(GrpcStatus status) noexcept override;
  void cancel() noexcept override;
  const GrpcStatus& status() const noexcept override { return status_; }
  const TensorAnswer& answer() const noexcept override { return answer_; }
  void sending(size_t bytes) noexcept override;
  void next() noexcept override;
  void release() noexcept override;

 private:
  friend class CallRoom;
  enum class State : int8_t { kFree, kAdmitted, kWaiting, kFinished };
  using Turn = CallTurns::Turn;

  void ring() noexcept override;
  static void notify(void* call) noexcept;  // on the thread that lets go
  void resume() noexcept;
  // Steps under the mutex. True: the call is finished.
  bool begin(const TensorRequest& request, Turn& turn);
  bool wait_for_load(const TensorRequest& request);
  bool run_decoded();
  bool answer_run();
  bool answer_token();
  void name_weights() noexcept;
  bool fail(const std::exception_ptr& problem) noexcept;
  bool end_waiting(GrpcCode code, ErrorCode error, const char* message) noexcept;
  // Tells the waiter, without the mutex, if a step finished the call.
  void tell(bool finished) noexcept;
  void record() noexcept;
  void clean() noexcept;

  CallRoom& room_;
  Mutex mutex_;
  State state_ = State::kFree;
  bool lent_ = false;      // the model or a reader of weights has the inference
  bool released_ = false;  // while lent: nobody waits any more
  bool reading_ = false;   // lent to a reader
  bool loading_ = false;   // lent to the loader of the model
  Demand::Waiter demand_;
  const TensorRequest* request_ = nullptr;  // while it is loaded
  GrpcMethod method_ = GrpcMethod::kModelInfer;
  GrpcWaiter* waiter_ = nullptr;
  GrpcStatus status_;
  int http_status_ = 200;  // the same in HTTP's words, for traces
  TensorAnswer answer_;
  char generation_[20] = {};  // in digits

  Clock::time_point start_, deadline_, load_deadline_, encoded_;
  RequestId request_id_;
  std::string peer_, weights_, affinity_, model_, version_;
  std::optional<TraceParent> trace_parent_;
  TraceLevels traced_;
  std::vector<TraceTensor> trace_tensors_;
  Inference inference_;
  HeavyWork::Task task_;
  BudgetShare message_room_, answer_room_;
  size_t sent_ = 0;
  // In the list of CallRoom, under its mutex.
  InferenceCall *next_ = nullptr, *previous_ = nullptr;
  Clock::time_point due_;
};

// What the calls of one server share.
class CallRoom {
 public:
  CallRoom(Service& service, AlarmClock& clock, size_t first_place);
  ~CallRoom();

  Service& service() noexcept { return service_; }
  CallTurns& turns() noexcept { return turns_; }
  InferenceCall* take();  // std::bad_alloc
  void give(InferenceCall& call) noexcept;
  // Whether no call is under way, nor any run of one that ended before.
  bool empty() const noexcept { return taken_.load(std::memory_order_acquire) == 0; }
  // Calls `task` on another thread, where the end of a run must not be kept waiting; here if there is none.
  void resume_later(HeavyWork::Task& task) noexcept;
  void add_sending(InferenceCall& call) noexcept;
  void end_sending(InferenceCall& call) noexcept;
  // Ends calls whose clients do not take their answers.
  void give_up_late(InferenceCall::Clock::time_point now) noexcept;
  void count(GrpcMethod method, GrpcCode code, std::chrono::nanoseconds time) noexcept;

 private:
  static constexpr size_t kKept = 256;  // free calls

  Service& service_;
  AlarmClock& clock_;
  CallTurns turns_;
  std::atomic<int64_t> taken_{0};
  Mutex mutex_;
  std::vector<std::unique_ptr<InferenceCall>> free_ SCONCE_GUARDED_BY(mutex_);
  Mutex sending_mutex_;
  InferenceCall* sending_ SCONCE_GUARDED_BY(sending_mutex_) = nullptr;
  HeavyWork resumers_;
};

}  // namespace sconce::server
