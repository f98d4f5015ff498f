// RowChecks: checks proofs that rows of a batch are independent. Child processes run served models on dummy inputs, one
// after the other, and may contradict a proof.
//
//   add() --> queue --a child process--> the proof stands, or contradict()
//
// Batching relies only on the proof, so no model waits for its check. The thread lives while there is something to
// check. Thread-safe.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "sconce/mutex.h"
#include "sconce/trial/trial_process.h"
#include "server/registry/repositories/package_finder.h"
#include "server/registry/trial/trial_request.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/config.h"

namespace sconce::server::registry {

class RowChecks {
 public:
  // The model to check. The functions are called on any thread.
  struct Subject {
    std::function<bool()> served;  // whether it is still served; must not allocate or lock
    // A trial found that rows influence each other. Called at most once.
    std::function<void(const scheduling::InvarianceFinding&)> contradict;
  };

  // stop: a descriptor that becomes readable at shutdown, and outlives this object.
  explicit RowChecks(int stop) : stop_(stop) {}
  ~RowChecks() { end(); }

  // Starts checking. program: as in TrialSettings. waiting: a child process without a task, or null. Call this once.
  void start(std::filesystem::path program, std::unique_ptr<TrialProcess> waiting);
  // Queues the check of a model that is about to be served, if there is something to check. interface: with observed
  // outputs.
  void add(const PackageEntry& package, const scheduling::ModelSignature& interface, const ModelConfig& config,
           Subject subject);
  // Stops checking. If the descriptor is not yet readable, the current check runs to its end.
  void end() noexcept;

 private:
  enum class State { kNew, kOpen, kClosed };
  struct Check {
    std::string model;
    std::shared_ptr<const Package> package;
    TrialSettings settings;
    TrialRequest request;
    Subject subject;
  };

  void begin() SCONCE_REQUIRES(mutex_);
  void run() noexcept;
  bool perform(Check& check);  // returns false at shutdown
  void close() noexcept;

  const int stop_;
  std::filesystem::path program_;  // constant from start() on
  Mutex mutex_;
  State state_ SCONCE_GUARDED_BY(mutex_) = State::kNew;
  std::deque<Check> queue_ SCONCE_GUARDED_BY(mutex_);
  std::unique_ptr<TrialProcess> waiting_ SCONCE_GUARDED_BY(mutex_);
  bool running_ SCONCE_GUARDED_BY(mutex_) = false;  // the thread runs; it ends as soon as this is false
  std::thread thread_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::registry
