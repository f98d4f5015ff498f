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
#include "server/grpc/call_slots.h"
#include "server/support/memory/request_budget.h"
#include "server/support/request_id.h"
#include "server/support/thread_pool.h"
#include "server/support/timer_queue.h"
#include "server/telemetry/telemetry.h"

namespace sconce::server::rpc {

class CallRoom;

class GrpcCall final : public GrpcInference, private TimerQueue::Alarm {
 public:
  using Clock = std::chrono::steady_clock;

  GrpcCall(CallRoom& room, TimerQueue& clock);
  ~GrpcCall() override;

  bool admit(api::GrpcMethod method, const GrpcCaller& caller, size_t bytes, GrpcWaiter& waiter) noexcept override;
  bool grow(size_t bytes) noexcept override;
  void run(const codecs::TensorRequest& request) noexcept override;
  void refuse(GrpcStatus status) noexcept override;
  void cancel() noexcept override;
  // Only the waiter calls these two, between finished() and next() or release(). Meanwhile no thread writes the
  // members.
  const GrpcStatus& status() const noexcept override SCONCE_NO_THREAD_SAFETY_ANALYSIS { return status_; }
  const codecs::TensorAnswer& answer() const noexcept override SCONCE_NO_THREAD_SAFETY_ANALYSIS { return answer_; }
  void sending(size_t bytes) noexcept override;
  void next() noexcept override;
  void release() noexcept override;

 private:
  friend class CallRoom;
  enum class State : int8_t { kFree, kAdmitted, kWaiting, kFinished };
  using Slot = CallSlots::Slot;

  void ring() noexcept override;
  static void notify(void* call) noexcept;  // on the thread of the holder
  void resume() noexcept;
  // Steps. True: the call has finished.
  bool start(api::GrpcMethod method, const GrpcCaller& caller, size_t bytes) SCONCE_REQUIRES(mutex_);
  bool begin(const codecs::TensorRequest& request, Slot& slot) SCONCE_REQUIRES(mutex_);
  void wait() SCONCE_REQUIRES(mutex_);
  bool go_on(Slot& slot) SCONCE_REQUIRES(mutex_);
  bool run_decoded() SCONCE_REQUIRES(mutex_);
  bool answer_run() SCONCE_REQUIRES(mutex_);
  bool answer_token() SCONCE_REQUIRES(mutex_);
  void name_weights() noexcept SCONCE_REQUIRES(mutex_);
  bool held() const noexcept SCONCE_REQUIRES(mutex_) { return call_.holder() != api::Call::Holder::kNone; }
  bool fail(const std::exception_ptr& problem) noexcept SCONCE_REQUIRES(mutex_);
  void cut_off(bool late) noexcept SCONCE_REQUIRES(mutex_);
  bool end_waiting(GrpcCode code, ErrorCode error, const char* message) noexcept SCONCE_REQUIRES(mutex_);
  void record() noexcept SCONCE_REQUIRES(mutex_);
  void clean() noexcept SCONCE_REQUIRES(mutex_);
  // Calls `step`, and then, without the mutex, the waiter if the step finished the call. Returns whether it did.
  template <class Step>
  bool do_step(const Step& step) noexcept SCONCE_EXCLUDES(mutex_);

  CallRoom& room_;
  Mutex mutex_;
  State state_ SCONCE_GUARDED_BY(mutex_) = State::kFree;
  // kCancelled or kDeadlineExceeded: the client left while an answer was sent that was not to be the last.
  GrpcCode cut_off_ SCONCE_GUARDED_BY(mutex_) = GrpcCode::kOk;
  bool released_ SCONCE_GUARDED_BY(mutex_) = false;  // by the waiter, while there is still a holder
  const codecs::TensorRequest* request_ SCONCE_GUARDED_BY(mutex_) = nullptr;  // while its model is being loaded
  api::GrpcMethod method_ SCONCE_GUARDED_BY(mutex_) = api::GrpcMethod::kModelInfer;
  GrpcWaiter* waiter_ SCONCE_GUARDED_BY(mutex_) = nullptr;
  GrpcStatus status_ SCONCE_GUARDED_BY(mutex_);
  int http_status_ SCONCE_GUARDED_BY(mutex_) = 200;  // the corresponding HTTP status, for traces
  codecs::TensorAnswer answer_ SCONCE_GUARDED_BY(mutex_);
  char weight_version_[20] SCONCE_GUARDED_BY(mutex_) = {};  // decimal digits

  Clock::time_point start_ SCONCE_GUARDED_BY(mutex_), deadline_ SCONCE_GUARDED_BY(mutex_),
      encoded_ SCONCE_GUARDED_BY(mutex_);
  RequestId request_id_ SCONCE_GUARDED_BY(mutex_);
  std::string peer_ SCONCE_GUARDED_BY(mutex_), model_ SCONCE_GUARDED_BY(mutex_);
  api::Call call_ SCONCE_GUARDED_BY(mutex_);  // except what its holder uses
  BudgetShare message_room_ SCONCE_GUARDED_BY(mutex_);
  size_t sent_ SCONCE_GUARDED_BY(mutex_) = 0;
  ThreadPool::Task task_;  // resumes the call
  // Of an answer that is being sent: in CallRoom's list, under its mutex.
  GrpcCall *next_ = nullptr, *previous_ = nullptr;
  GrpcWaiter* reader_ = nullptr;
  Clock::time_point due_;
};

// Objects that the calls of one server share.
class CallRoom {
 public:
  // std::system_error, std::bad_alloc: no thread can be started.
  CallRoom(api::Admission& admission, telemetry::Telemetry& telemetry, TimerQueue& clock, size_t first_place);
  ~CallRoom();

  api::Admission& admission() noexcept { return admission_; }
  telemetry::Telemetry& telemetry() noexcept { return telemetry_; }
  CallSlots& slots() noexcept { return slots_; }
  GrpcCall* take();  // std::bad_alloc
  void give(GrpcCall& call) noexcept;
  // Whether no call is in progress, and no run of an ended call.
  bool empty() const noexcept { return taken_.load(std::memory_order_acquire) == 0; }
  // Calls `task` on another thread: the calling thread may hold the mutex of the call that the task resumes, and the
  // end of a run is not delayed. Needs no memory and no new thread.
  void resume_later(ThreadPool::Task& task) noexcept;
  TimerQueue& clock() noexcept { return clock_; }
  // By its clock, calls have deadlines and are counted.
  GrpcCall::Clock::time_point now() const { return clock_.now(); }
  // The waiter's client must have read an answer by the time `due`.
  void add_sending(GrpcCall& call, GrpcWaiter& waiter, GrpcCall::Clock::time_point due) noexcept;
  void end_sending(GrpcCall& call) noexcept;
  // Ends calls whose clients read their answers too slowly.
  void give_up_late(GrpcCall::Clock::time_point now) noexcept;
  void count(api::GrpcMethod method, GrpcCode code, std::chrono::nanoseconds time) noexcept;

 private:
  static constexpr size_t kMaxFree = 256;  // free calls

  api::Admission& admission_;
  telemetry::Telemetry& telemetry_;
  TimerQueue& clock_;
  CallSlots slots_;
  std::atomic<int64_t> taken_{0};
  Mutex mutex_;
  std::vector<std::unique_ptr<GrpcCall>> free_ SCONCE_GUARDED_BY(mutex_);
  Mutex sending_mutex_;
  GrpcCall* sending_ SCONCE_GUARDED_BY(sending_mutex_) = nullptr;
  ThreadPool resumers_;
};

}  // namespace sconce::server::rpc
