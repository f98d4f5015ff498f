// GrpcCall: one inference over gRPC, from admission to the answer. api/access.h and api/call.h have the parts shared
// with other protocols. Reused from call to call.
//
//   kFree --admit--> kAdmitted --run--> kWaiting --the run ends, cancel, deadline--> kFinished --release--> kFree
//                                       kWaiting <-------- next, if the answer is not the last -- kFinished
//
// Steps run on threads of gRPC, of CallRoom and of the timer queue, one at a time under the mutex. If the call ends
// while it has a holder (Call::Holder), the object stays until the holder releases it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/mutex.h"
#include "server/api/admission.h"
#include "server/api/call.h"
#include "server/grpc/boundary.h"
#include "server/grpc/call_turn.h"
#include "server/support/memory/request_budget.h"
#include "server/support/request_id.h"
#include "server/support/thread_pool.h"
#include "server/support/timer_queue.h"
#include "server/telemetry/telemetry.h"

namespace sconce::server {

class CallRoom;

class GrpcCall final : public GrpcInference, private TimerQueue::Alarm {
 public:
  using Clock = std::chrono::steady_clock;

  GrpcCall(CallRoom& room, TimerQueue& clock);
  ~GrpcCall() override;

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
  static void notify(void* call) noexcept;  // on the thread of the holder
  void resume() noexcept;
  // Steps, under the mutex. True: the call has finished.
  bool begin(const TensorRequest& request, Turn& turn);
  void wait();
  bool go_on(Turn& turn);
  bool run_decoded();
  bool answer_run();
  bool answer_token();
  void name_weights() noexcept;
  bool held() const noexcept { return call_.holder() != Call::Holder::kNone; }
  bool fail(const std::exception_ptr& problem) noexcept;
  bool end_waiting(GrpcCode code, ErrorCode error, const char* message) noexcept;
  // Notifies the waiter, without the mutex, if a step finished the call.
  void tell(bool finished) noexcept;
  void record() noexcept;
  void clean() noexcept;

  CallRoom& room_;
  Mutex mutex_;
  State state_ = State::kFree;
  // kCancelled or kDeadlineExceeded: the client left while an answer was sent that was not to be the last.
  GrpcCode cut_off_ = GrpcCode::kOk;
  bool released_ = false;                   // released by the waiter while it still has a holder
  const TensorRequest* request_ = nullptr;  // while its model is being loaded
  GrpcMethod method_ = GrpcMethod::kModelInfer;
  GrpcWaiter* waiter_ = nullptr;
  GrpcStatus status_;
  int http_status_ = 200;  // the corresponding HTTP status, for traces
  TensorAnswer answer_;
  char generation_[20] = {};  // decimal digits

  Clock::time_point start_, deadline_, encoded_;
  RequestId request_id_;
  std::string peer_, model_;
  Call call_;
  ThreadPool::Task task_;
  BudgetShare message_room_;
  size_t sent_ = 0;
  // In CallRoom's list, under its mutex.
  GrpcCall *next_ = nullptr, *previous_ = nullptr;
  Clock::time_point due_;
};

// Objects that the calls of one server share.
class CallRoom {
 public:
  // std::system_error, std::bad_alloc: no thread can be started.
  CallRoom(Admission& admission, Telemetry& telemetry, TimerQueue& clock, size_t first_place);
  ~CallRoom();

  Admission& admission() noexcept { return admission_; }
  Telemetry& telemetry() noexcept { return telemetry_; }
  CallTurns& turns() noexcept { return turns_; }
  GrpcCall* take();  // std::bad_alloc
  void give(GrpcCall& call) noexcept;
  // Whether no call is in progress, and no run of an ended call.
  bool empty() const noexcept { return taken_.load(std::memory_order_acquire) == 0; }
  // Calls `task` on another thread: the calling thread may hold the mutex of the call that the task resumes, and the
  // end of a run is not delayed. Needs no memory and no new thread.
  void resume_later(ThreadPool::Task& task) noexcept;
  void add_sending(GrpcCall& call) noexcept;
  void end_sending(GrpcCall& call) noexcept;
  // Ends calls whose clients read their answers too slowly.
  void give_up_late(GrpcCall::Clock::time_point now) noexcept;
  void count(GrpcMethod method, GrpcCode code, std::chrono::nanoseconds time) noexcept;

 private:
  static constexpr size_t kKept = 256;  // free calls

  Admission& admission_;
  Telemetry& telemetry_;
  TimerQueue& clock_;
  CallTurns turns_;
  std::atomic<int64_t> taken_{0};
  Mutex mutex_;
  std::vector<std::unique_ptr<GrpcCall>> free_ SCONCE_GUARDED_BY(mutex_);
  Mutex sending_mutex_;
  GrpcCall* sending_ SCONCE_GUARDED_BY(sending_mutex_) = nullptr;
  ThreadPool resumers_;
};

}  // namespace sconce::server
