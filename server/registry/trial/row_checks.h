// RowChecks: second looks at proofs that rows of a shared run do not influence each other. Child processes try served
// models on inputs that nobody sent, one after the other, and may contradict a proof.
//
//   add() --> queue --a child process--> the proof stands, or contradict()
//
// A proof is all that sharing rests on, so no model waits for its check. The thread lives while there is something to
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

namespace sconce::server {

class RowChecks {
 public:
  // Whose rows are checked. Called on any thread.
  struct Subject {
    std::function<bool()> served;  // whether it still is; allocates and locks nothing
    // A trial saw that rows influence each other. Once, or never.
    std::function<void(const InvarianceFinding&)> contradict;
  };

  // stop: a descriptor that becomes readable when the server ends, and outlives this.
  explicit RowChecks(int stop) : stop_(stop) {}
  ~RowChecks() { end(); }

  // From now on models are checked. program: as TrialSettings has it. waiting: a child of it without a task, or null.
  // Once.
  void start(std::filesystem::path program, std::unique_ptr<TrialProcess> waiting);
  // Has a model checked that is about to be served, if there is something to check. interface: with what was learned of
  // its outputs.
  void add(const PackageEntry& package, const ModelSignature& interface, const ModelConfig& config, Subject subject);
  // Nothing is checked any more. The descriptor is readable already, or the check under way goes on to its end.
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
  bool perform(Check& check);  // returns false if the server ends
  void close() noexcept;

  const int stop_;
  std::filesystem::path program_;  // constant from start() on
  Mutex mutex_;
  State state_ SCONCE_GUARDED_BY(mutex_) = State::kNew;
  std::deque<Check> queue_ SCONCE_GUARDED_BY(mutex_);
  std::unique_ptr<TrialProcess> waiting_ SCONCE_GUARDED_BY(mutex_);
  bool running_ SCONCE_GUARDED_BY(mutex_) = false;  // the thread, which ends as soon as this is false
  std::thread thread_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server
