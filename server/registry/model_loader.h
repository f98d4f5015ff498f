// ModelLoader: the thread that loads and unloads models, one at a time, while others are served. It also polls the
// repositories if configured.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sconce/mutex.h"
#include "server/registry/on_demand.h"
#include "server/registry/repositories/folder_events.h"
#include "server/registry/repositories/repository_watch.h"
#include "server/registry/repository.h"
#include "server/registry/trial/load_trial.h"
#include "server/registry/trial/row_checks.h"
#include "server/registry/trial/trial_slots.h"
#include "server/scheduling/batching/idle_watch.h"
#include "server/weights/store/starting_weights.h"
#include "server/weights/store/weight_store.h"

namespace sconce::server::registry {

class ModelLoader {
 public:
  // Called on the loader thread when a task ends, with null or the task's exception. Must not throw.
  using Done = std::function<void(std::exception_ptr)>;

  // packages: loaded first. failed: called once, on the loader thread, if one of them cannot be loaded and
  // exit_on_error is set. idle_watch: notified of models' runs; calls wake(). on_demand: the models that are loaded on
  // demand, including those in `files`; null: all models are loaded at start.
  ModelLoader(const ServerConfig& config, const PackageFinder& finder, Repository& repository,
              weights::WeightStore& store, scheduling::IdleWatch& idle_watch, std::vector<PackageEntry> packages,
              std::function<void(std::exception_ptr)> failed, OnDemand* on_demand = nullptr,
              std::span<const PackageFile> files = {});
  ~ModelLoader() { stop(); }

  // The models in the files, by name and version. If a file cannot be opened, throws with exit_on_error; otherwise the
  // file's stem becomes an entry. kAlreadyExists for two models with the same name and version.
  static std::vector<PackageEntry> open(const PackageFinder& finder, const std::vector<PackageFile>& files,
                                        bool exit_on_error);

  // Called on the loader thread before a loaded model is served, while no other thread can find it. Set it before
  // start().
  using Loaded = std::function<void(const std::shared_ptr<ServedModel>&, const weights::StartingWeights&)>;
  void on_loaded(Loaded loaded) { loaded_ = std::move(loaded); }
  // program: runs trials of models on dummy inputs (TrialSettings::program). waiting: a child process of it that waits
  // for a task, or null. The trial of the first model starts now, while the server still starts. Call this before
  // start(); without a program there are no trials.
  void try_with(std::filesystem::path program, std::unique_ptr<TrialProcess> waiting);
  // unread: repositories that could not be read at start. They are polled, and the server is not ready until they are
  // read. Call this before start().
  void start_without(std::span<const UnreadFolder> unread);
  void start();
  // On any thread, at shutdown: aborts a load that waits for a trial or a peer, or makes warm-up runs; later loads are
  // aborted too.
  void end_loads() noexcept;
  // Finishes the current task; the other tasks get kUnavailable.
  void stop();

  // On any thread: a poll of the addresses in `serve` has found changes. With `watch` the changes are loaded; otherwise
  // only models that could not be loaded before.
  void sources_changed() noexcept;
  // On any thread: a model ran while the loader thread slept.
  void wake() noexcept;
  // Queues a task, on any thread. Tasks run in the order of submission. kQueueFull; kUnavailable after stop().
  void submit(std::function<void()> work, Done done);

  // Null: all models are loaded at start.
  OnDemand* on_demand() const noexcept { return on_demand_; }

  // Tasks.

  // Loads the new or changed versions of a model, or all versions if none has changed. Each version replaces the served
  // one when it is ready. Remote files are listed first. Then unloads versions that must no longer be served. If a
  // version cannot be loaded, the served version stays, and the error is thrown after the other versions were tried.
  // kNotFound.
  void load_model(const std::string& name);
  // kNotFound.
  void unload_model(const std::string& name);

 private:
  using Clock = std::chrono::steady_clock;
  struct Task {
    std::function<void()> work;
    Done done;
  };

  void run();
  void wait_for_work(Clock::time_point next_look, Clock::time_point next_rest) SCONCE_REQUIRES(mutex_);
  void load_first();
  void perform(Task task);
  // Also for the holder of the model's LoadLock. trial: a trial in progress; null: the trial starts here.
  void load(const PackageEntry& package, std::unique_ptr<LoadTrial> trial = nullptr);
  // Starts the trial of a model that is loaded later. Null if there is nothing to find out, or if no trial may start
  // now.
  std::unique_ptr<LoadTrial> begin_ahead(const PackageEntry& package);
  bool serves_any() const;
  // Starts a batch invariance check in a child process, if it is proved that rows are independent.
  void check_rows(const PackageEntry& package, const ModelConfig& config, const std::shared_ptr<ServedModel>& served);
  void check_not_ending() const;  // kUnavailable
  bool serves(const PackageEntry& package) const;
  weights::StartingWeights start_weights(const PackageEntry& package, LoadedModel& loaded);
  // The packages found for a model, and the first error that prevented others from being opened.
  struct Found {
    std::vector<PackageEntry> versions;
    std::exception_ptr problem;
  };
  Found find(const std::string& name);
  void load_found(const Found& found, const std::string& name, bool again);
  // Adds the served versions from repositories that could not be read.
  void add_served(const std::string& name, FoundFiles& listed) const;
  // Whether repositories are polled.
  bool looks() const noexcept { return config_.watch.count() > 0 || !unread_.empty(); }
  void look();
  std::string take_changes(const FoundFiles& found);
  void load_new(const FoundFiles& found);
  void note_unread(const FoundFiles& found);
  void note_read(const FoundFiles& found);
  void follow_folders();
  // changed: something in the repositories changed before the last poll.
  Clock::duration until_next_look(bool changed) const noexcept;
  bool update_stem(const std::string& stem, const std::vector<PackageFile>& files);
  std::set<std::string> names_of(const std::string& stem) const;
  bool update_known(const std::string& stem, const std::vector<PackageFile>& files);

  const ServerConfig& config_;
  const PackageFinder& finder_;
  Repository& repository_;
  weights::WeightStore& store_;
  scheduling::IdleWatch& idle_watch_;
  OnDemand* const on_demand_;
  std::vector<PackageEntry> first_;
  const std::function<void(std::exception_ptr)> failed_;
  Loaded loaded_;
  std::filesystem::path trial_program_;
  TrialSlots trial_slots_;
  RowChecks checks_{trial_slots_.descriptor()};       // of served models, started after the initial loads
  std::unique_ptr<TrialProcess> waiting_;             // a child process without a task, until then
  std::unique_ptr<LoadTrial> ahead_;                  // of the next package in first_
  const std::vector<std::filesystem::path> folders_;  // the repositories
  RepositoryWatch watch_;
  std::unique_ptr<FolderEvents> events_;                   // while repositories are polled
  bool followed_ = false;                                  // it reports every change after the last poll
  std::string events_problem_;                             // why not; the last logged one
  std::string watch_problem_;                              // the last logged one
  std::map<std::filesystem::path, Catalog::Away> unread_;  // unread repositories of the last poll

  Mutex mutex_;
  ConditionVariable wake_;
  std::deque<Task> tasks_ SCONCE_GUARDED_BY(mutex_);
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  bool changed_ SCONCE_GUARDED_BY(mutex_) = false;  // something in the repositories has changed since the last poll
  std::atomic<bool> ending_{false};                 // aborts long operations
  std::thread thread_;
};

}  // namespace sconce::server::registry
