// TrainerSessions: weight updates that trainers send in several requests. Thread-safe.
//
// A session is for one model. It is started, receives tensors, and is finished, which publishes all of them at once. It
// is aborted when another session for the model starts, when no request comes for a while, when its update fails or is
// cancelled, and when the model is unloaded or replaced. Later requests to an aborted session are refused, because a
// partial update must not be published as a complete one.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "sconce/mutex.h"
#include "server/rollout/trainer_tensors/shared_tensors.h"
#include "server/rollout/trainer_update.h"

namespace sconce::server::rollout {

class TrainerSessions {
 public:
  // at_once: starts the update now, so that a busy model is refused now and not when the first tensors arrive.
  void begin(Rollout& rollout, const std::shared_ptr<registry::ServedModel>& served, const UpdateOptions& options,
             bool at_once, const std::string& label = {});
  // Whether the model has a session, which may be aborted.
  bool has(const registry::ServedModel& served) const;
  // Adds tensors to the session. A non-empty label replaces the earlier one. kFailedPrecondition if there is no session
  // or it was aborted.
  void add(Rollout& rollout, const std::shared_ptr<registry::ServedModel>& served, const SharedTensors& shared,
           const std::string& label);
  // Publishes the tensors and returns the weight version; 0 if none were added. kFailedPrecondition.
  uint64_t finish(const registry::ServedModel& served, const std::string& label);
  // Aborts the model's session, if there is one.
  void drop(const registry::ServedModel& served, const std::string& reason);

 private:
  struct Session {
    explicit Session(UpdateOptions options) : options(std::move(options)) {}
    Mutex mutex;
    ConditionVariable changed;
    UpdateOptions options SCONCE_GUARDED_BY(mutex);
    std::unique_ptr<TrainerUpdate> update SCONCE_GUARDED_BY(mutex);  // null: no tensors yet, or the update has ended
    std::string label SCONCE_GUARDED_BY(mutex), ended SCONCE_GUARDED_BY(mutex);
    std::chrono::steady_clock::time_point used SCONCE_GUARDED_BY(mutex);

    void start(Rollout& rollout, const std::shared_ptr<registry::ServedModel>& served,
               const std::shared_ptr<Session>& self) SCONCE_REQUIRES(mutex);
    void end(const std::string& reason) SCONCE_REQUIRES(mutex);
    void watch(Rollout& rollout);
  };
  using Key = std::pair<std::string, int64_t>;
  static Key key_of(const registry::ServedModel& served) {
    return {served.interface().name, served.interface().version};
  }
  std::shared_ptr<Session> find(const registry::ServedModel& served) const;

  mutable Mutex mutex_;
  std::map<Key, std::shared_ptr<Session>> sessions_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::rollout
