// A service on a clock that stands still, without listeners. What holds its calls does what the test says:
//
//   the loader    each load on demand waits for end_load()
//   the queue     while the model has no replicas, requests wait: set_replicas()
//   the model     a run does not end between hold_runs() and release_runs()
//
// Models: "m", a fake one of 4 features, and "loops.explicit", whose decode loop makes tokens until it is stopped.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/api/admission.h"
#include "server/grpc/grpc_call.h"
#include "server/registry/model_loader.h"
#include "server/registry/on_demand.h"
#include "server/rollout/rollout.h"
#include "server/support/timer_queue.h"
#include "server/telemetry/telemetry.h"
#include "tests/files.h"

namespace sconce::test {

class ScriptedService {
 public:
  using Clock = server::TimerQueue::Clock;

  // set: changes settings.
  explicit ScriptedService(const std::function<void(server::ServerConfig&)>& set = [](auto&) {});
  ~ScriptedService();  // all calls have ended

  static Clock::time_point now() noexcept;
  // Fires the alarms that are due then.
  void pass(Clock::duration time);
  static void pass_unseen(Clock::duration time);  // without alarms

  void publish(const std::string& name) const;  // without the loader
  void evict(const std::string& name) const { repository->forget(name); }
  // Until the nth load has begun.
  void wait_for_load(size_t nth = 1);
  size_t loads();  // that have begun
  // Ends the load that has begun, or is about to; with an error unless `problem` is empty.
  void end_load(const std::string& problem = {});
  std::atomic<bool> evicts{false};  // a model as soon as it is loaded, before requests can use it
  // Number of requests that wait for a load.
  size_t waiting() const { return static_cast<size_t>(on_demand->counts(*repository->snapshot()).waiting); }

  std::shared_ptr<server::registry::ServedModel> model(const std::string& name) const {
    return repository->snapshot()->ready(name, "");
  }
  // Of requests to the model that failed for this reason.
  uint64_t failed(const std::string& name, ErrorCode code) const;
  static void hold_runs();
  static void wait_for_run();  // until one is held
  static void release_runs();

  // The log's lines with this text, since the service was made.
  static std::vector<std::string> log_lines(const std::string& with);

  const TempFolder folder;
  server::ServerConfig config;
  server::TimerQueue clock{now};
  server::scheduling::IdleWatch idle_watch{[] {}};
  server::DeferredDeleter reaper;
  server::signing::SignatureRule signatures;
  server::weights::WeightStore store{""};
  server::ModelBudget budget{0, 0};
  std::unique_ptr<server::registry::PackageFinder> finder;
  std::unique_ptr<server::registry::Repository> repository;
  std::unique_ptr<server::registry::OnDemand> on_demand;
  std::unique_ptr<server::registry::ModelLoader> control;
  server::http::OpenConnections connections;
  server::RequestBudget request_memory{64 << 20};
  std::atomic<bool> draining{false};
  std::unique_ptr<server::telemetry::Telemetry> telemetry;
  std::unique_ptr<server::api::Admission> admission;
  std::unique_ptr<server::rollout::Rollout> rollout;

 private:
  void load(const server::registry::PackageEntry& package);
  void publish(const server::registry::PackageEntry& package) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t loads_ = 0;
  bool ending_ = false;
  std::deque<std::string> ends_;
};

}  // namespace sconce::test
