#include "server/rollout/trainer_sessions.h"

#include <utility>

#include "sconce/check.h"
#include "server/rollout/rollout.h"
#include "server/support/failure.h"

namespace sconce::server::rollout {
namespace {

// Interval at which a session checks for cancellation.
constexpr std::chrono::milliseconds kLook{200};

}  // namespace

void TrainerSessions::Session::end(const std::string& reason) {
  if (update) succeeds([&]() SCONCE_NO_THREAD_SAFETY_ANALYSIS { update->give_up(reason); });
  update.reset();
  ended = reason;
  changed.notify_all();
}

// Starts the update, and a thread that aborts it when no more requests come.
void TrainerSessions::Session::start(Rollout& rollout, const std::shared_ptr<registry::ServedModel>& served,
                                     const std::shared_ptr<Session>& self) {
  update = std::make_unique<TrainerUpdate>(rollout, served, options);
  rollout.admin_threads.run([&rollout, self] { self->watch(rollout); }, [](const std::exception_ptr&) {}, [] {});
}

void TrainerSessions::Session::watch(Rollout& rollout) {
  const MutexLock lock(mutex);
  while (update) {
    changed.wait_for(mutex, kLook);
    if (!update) return;
    if (std::chrono::steady_clock::now() - used > rollout.config.trainer_timeout) {
      end("nothing came for trainer_timeout");
    } else if (const std::string problem = problem_of([this]() SCONCE_NO_THREAD_SAFETY_ANALYSIS { update->check(); });
               !problem.empty()) {
      end(problem);
    }
  }
}

std::shared_ptr<TrainerSessions::Session> TrainerSessions::find(const registry::ServedModel& served) const {
  const MutexLock lock(mutex_);
  const auto it = sessions_.find(key_of(served));
  return it == sessions_.end() ? nullptr : it->second;
}

bool TrainerSessions::has(const registry::ServedModel& served) const { return find(served) != nullptr; }

void TrainerSessions::begin(Rollout& rollout, const std::shared_ptr<registry::ServedModel>& served,
                            const UpdateOptions& options, bool at_once, const std::string& label) {
  const auto session = std::make_shared<Session>(options);
  std::shared_ptr<Session> before;
  {
    const MutexLock lock(mutex_);
    std::shared_ptr<Session>& place = sessions_[key_of(*served)];
    before = std::exchange(place, session);
  }
  if (before) {
    const MutexLock lock(before->mutex);
    before->end("another update of the model was begun");
  }
  const MutexLock lock(session->mutex);
  session->used = std::chrono::steady_clock::now();
  session->label = label;
  if (!at_once) return;
  const std::exception_ptr problem =
      exception_of([&]() SCONCE_NO_THREAD_SAFETY_ANALYSIS { session->start(rollout, served, session); });
  if (!problem) return;
  session->end(describe_failure(problem).message);
  std::rethrow_exception(problem);
}

void TrainerSessions::add(Rollout& rollout, const std::shared_ptr<registry::ServedModel>& served,
                          const SharedTensors& shared, const std::string& label) {
  const std::shared_ptr<Session> session = find(*served);
  SCONCE_CHECK(session, kFailedPrecondition, "no update of the model was begun");
  const MutexLock lock(session->mutex);
  SCONCE_CHECK(session->ended.empty(), kFailedPrecondition, "the update of the model is over: ", session->ended);
  const std::exception_ptr problem = exception_of([&]() SCONCE_NO_THREAD_SAFETY_ANALYSIS {
    if (!session->update) session->start(rollout, served, session);
    session->update->add(shared.tensors(), shared.opening());
  });
  session->used = std::chrono::steady_clock::now();
  if (problem) {
    session->end(describe_failure(problem).message);
    std::rethrow_exception(problem);
  }
  if (!label.empty()) session->label = label;
}

void TrainerSessions::drop(const registry::ServedModel& served, const std::string& reason) {
  std::shared_ptr<Session> session;
  {
    const MutexLock lock(mutex_);
    const auto at = sessions_.find(key_of(served));
    if (at == sessions_.end()) return;
    session = std::move(at->second);
    sessions_.erase(at);
  }
  const MutexLock lock(session->mutex);
  if (session->ended.empty()) session->end(reason);
}

uint64_t TrainerSessions::finish(const registry::ServedModel& served, const std::string& label) {
  const std::shared_ptr<Session> session = find(served);
  SCONCE_CHECK(session, kFailedPrecondition, "no update of the model was begun");
  {
    // The session ends even if publishing fails.
    const MutexLock lock(mutex_);
    if (const auto it = sessions_.find(key_of(served)); it != sessions_.end() && it->second == session)
      sessions_.erase(it);
  }
  const MutexLock lock(session->mutex);
  SCONCE_CHECK(session->ended.empty(), kFailedPrecondition, "the update of the model is over: ", session->ended);
  if (!session->update) return 0;
  struct End {
    Session& session;
    ~End() SCONCE_NO_THREAD_SAFETY_ANALYSIS { session.end("it was finished"); }
  } const end{*session};
  return session->update->publish(label.empty() ? session->label : label);
}

}  // namespace sconce::server::rollout
