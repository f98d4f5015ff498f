// GrpcDocument: one call over gRPC other than inference, from its message to its answer. The route of HTTP answers it
// (api/document_call.h), or the loader thread executes it.
//
//   kNew --start()--> kEnded                       answered or refused
//   kNew --start()--> kWaiting                     for the load of its model; it can be cancelled
//                     kWaiting --notice--> kEnded, or kWaiting again
//                     kWaiting --cancel(), deadline--> kEnded
//   kNew --start()--> kExecuting --> kEnded        by the loader thread
//
// Steps run on threads of gRPC, of CallRoom and of the loader, one at a time under the mutex. While the call waits, it
// keeps itself alive; after cancel() or the deadline, until LoadQueue's notice has come if one is under way.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "sconce/mutex.h"
#include "server/api/document_call.h"
#include "server/grpc/boundary.h"
#include "server/grpc/call_slots.h"
#include "server/grpc/documents.h"
#include "server/grpc/grpc_call.h"
#include "server/support/request_id.h"
#include "server/support/thread_pool.h"
#include "server/support/timer_queue.h"

namespace sconce::server::rpc {

class GrpcDocument final : public GrpcAnswering,
                           public std::enable_shared_from_this<GrpcDocument>,
                           private TimerQueue::Alarm {
 public:
  using Clock = std::chrono::steady_clock;

  // Whether each method has a route. kInternal
  static void check_routes();

  // done: as in GrpcHost::answer(). std::bad_alloc
  GrpcDocument(CallRoom& room, api::GrpcMethod method, const GrpcCaller& caller, GrpcHost::Done done);
  ~GrpcDocument() override;

  // Call this once. `done` is called within, or later on another thread. Returns whether the call can be cancelled.
  bool start(std::string_view authorization, std::string_view message) noexcept;
  void cancel() noexcept override;

 private:
  enum class State : int8_t { kNew, kWaiting, kExecuting, kEnded };
  using Self = std::shared_ptr<GrpcDocument>;

  void ring() noexcept override;
  void resume() noexcept;
  void end_late() noexcept;
  // Steps. True: the call has its status.
  bool begin(std::string_view authorization, std::string_view message) SCONCE_REQUIRES(mutex_);
  bool answer(CallSlots::Slot& slot, bool loaded) SCONCE_REQUIRES(mutex_);
  void execute(const api::OnControlThread& handler) SCONCE_REQUIRES(mutex_);
  bool end_waiting(GrpcCode code, const char* message, Self& released) noexcept SCONCE_REQUIRES(mutex_);
  bool fail(const std::exception_ptr& problem) noexcept SCONCE_REQUIRES(mutex_);
  // Executes `step`, and then, without the mutex, reports the end of the call if the step ended it.
  template <class Step>
  void do_step(const Step& step) noexcept SCONCE_EXCLUDES(mutex_);
  void report() noexcept SCONCE_NO_THREAD_SAFETY_ANALYSIS;

  CallRoom& room_;
  const api::GrpcMethod method_;
  const GrpcHost::Done done_;
  const std::string peer_;
  const Clock::time_point start_, deadline_;
  RequestId id_;
  ThreadPool::Task resume_task_, late_task_;  // after the notice; after the deadline
  Mutex mutex_;
  State state_ SCONCE_GUARDED_BY(mutex_) = State::kNew;
  RouteRequest request_ SCONCE_GUARDED_BY(mutex_);
  http::RouteMatch match_ SCONCE_GUARDED_BY(mutex_);  // views request_
  api::Call call_ SCONCE_GUARDED_BY(mutex_);
  // Each keeps the call alive for its task: resume_self_ until the notice, late_self_ from the deadline on.
  Self resume_self_ SCONCE_GUARDED_BY(mutex_), late_self_ SCONCE_GUARDED_BY(mutex_);
  GrpcStatus status_ SCONCE_GUARDED_BY(mutex_);
  std::string text_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::rpc
