// TrainerSessions: updates that trainers bring in several requests. Thread-safe.
//
// A session is about one model. It is begun, gets tensors, and is finished, which publishes all of them at once. It
// ends without that when another one of the model begins, when nothing comes for a while, when its update fails or is
// cancelled, and when the model is unloaded or replaced. What comes later for a session that ended so is refused,
// because a part of an update must not be published as if it were the whole.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "sconce/mutex.h"
#include "server/rollout/trainer_tensors/shared_tensors.h"
#include "server/rollout/trainer_update.h"

namespace sconce::server {

class TrainerSessions {
 public:
  // at_once: begins the update now, so that a busy model is refused now, not when the first tensors come.
  void begin(Service& service, const std::shared_ptr<ServedModel>& served, const UpdateOptions& options, bool at_once,
             const std::string& label = {});
  // Whether the model has a session, perhaps one that ended.
  bool has(const ServedModel& served) const;
  // Adds tensors to the session. A label that is not empty replaces the earlier one. kFailedPrecondition if there is no
  // session or it has ended.
  void add(Service& service, const std::shared_ptr<ServedModel>& served, const SharedTensors& shared,
           const std::string& label);
  // Publishes the tensors and returns the generation; 0 if none were added. kFailedPrecondition.
  uint64_t finish(const ServedModel& served, const std::string& label);
  // Ends the model's session without publishing, if there is one.
  void drop(const ServedModel& served, const std::string& reason);

 private:
  struct Session {
    explicit Session(UpdateOptions options) : options(std::move(options)) {}
    Mutex mutex;
    ConditionVariable changed;
    UpdateOptions options SCONCE_GUARDED_BY(mutex);
    std::unique_ptr<TrainerUpdate> update SCONCE_GUARDED_BY(mutex);  // null: nothing was added yet, or it is over
    std::string label SCONCE_GUARDED_BY(mutex), ended SCONCE_GUARDED_BY(mutex);
    std::chrono::steady_clock::time_point used SCONCE_GUARDED_BY(mutex);

    void start(Service& service, const std::shared_ptr<ServedModel>& served, const std::shared_ptr<Session>& self)
        SCONCE_REQUIRES(mutex);
    void end(const std::string& reason) SCONCE_REQUIRES(mutex);
    void watch(Service& service);
  };
  using Key = std::pair<std::string, int64_t>;
  static Key key_of(const ServedModel& served) { return {served.interface().name, served.interface().version}; }
  std::shared_ptr<Session> find(const ServedModel& served) const;

  mutable Mutex mutex_;
  std::map<Key, std::shared_ptr<Session>> sessions_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server
