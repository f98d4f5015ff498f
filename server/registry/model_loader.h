// ModelLoader: the thread that loads and unloads models one at a time while others are served, and that watches the
// repositories if it is asked to.
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
#include "server/registry/trial/trial_turns.h"
#include "server/scheduling/batching/idle_watch.h"
#include "server/weights/store/starting_weights.h"
#include "server/weights/store/weight_store.h"

namespace sconce::server {

class ModelLoader {
 public:
  // Called on the control thread when a task ends, with null or what it threw. Must not throw.
  using Done = std::function<void(std::exception_ptr)>;

  // packages: loaded first. failed: called once, on the control thread, if one of them cannot be loaded and that shall
  // end the server (exit_on_error).
  // idle_watch: is told of models' runs and calls wake(). on_demand: knows the models that are loaded on demand, of
  // these files too; null: all are loaded at the start.
  ModelLoader(const ServerConfig& config, const PackageFinder& finder, Repository& repository, WeightStore& store,
              IdleWatch& idle_watch, std::vector<PackageEntry> packages, std::function<void(std::exception_ptr)> failed,
              OnDemand* on_demand = nullptr, std::span<const PackageFile> files = {});
  ~ModelLoader() { stop(); }

  // The models of the files, by name and version. If a file cannot be opened, throws with exit_on_error, else makes an
  // entry under its stem. kAlreadyExists for two of one name and version.
  static std::vector<PackageEntry> open(const PackageFinder& finder, const std::vector<PackageFile>& files,
                                        bool exit_on_error);

  // Called on the control thread when a loaded model is about to be served: nobody else can find it yet. Before
  // start().
  using Loaded = std::function<void(const std::shared_ptr<ServedModel>&, const StartingWeights&)>;
  void on_loaded(Loaded loaded) { loaded_ = std::move(loaded); }
  // The program that tries models on inputs that nobody sent (TrialSettings::program), and a child of it that waits for
  // a task, if there is one. The trial of the first model begins now, while the server still starts. Before start();
  // without a program, nothing is tried.
  void try_with(std::filesystem::path program, std::unique_ptr<TrialProcess> waiting);
  // Repositories that could not be read at the start: the server is not ready before they are, and looks at them again
  // and again. Before start().
  void start_without(std::span<const UnreadFolder> unread);
  void start();
  // On any thread: the server is ending. A load that waits for a trial or a peer, or makes runs to warm up, ends soon;
  // so does any later one.
  void end_loads() noexcept;
  // Finishes the current task; the others get kUnavailable.
  void stop();

  // On any thread: addresses of `serve` were looked at, and something there has changed. With `watch` that is looked
  // at; else what could not be had until now is loaded.
  void sources_changed() noexcept;
  // On any thread: a model ran while this one slept.
  void wake() noexcept;
  // Queues a task, on any thread. Tasks run in order. kQueueFull; kUnavailable after stop().
  void submit(std::function<void()> work, Done done);

  // Null: all models are loaded at the start.
  OnDemand* on_demand() const noexcept { return on_demand_; }

  // Tasks.

  // Loads the versions of a model that are new or changed, or all of them if none is. Each replaces the served one when
  // it is ready. Files that are elsewhere are asked for first. Then unloads versions that are not to be served any
  // more. If a version cannot be loaded, what is
  // served stays, and the error is thrown after the others were tried. kNotFound.
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
  // For whoever has the model's turn, too. trial: one that has begun; null: it begins here.
  void load(const PackageEntry& package, std::unique_ptr<LoadTrial> trial = nullptr);
  // Begins the trial of a model that is loaded later. Null if there is nothing to find out, or no turn now.
  std::unique_ptr<LoadTrial> begin_ahead(const PackageEntry& package);
  bool serves_any() const;
  // Has a child look whether rows influence each other, if it is proved that they do not.
  void check_rows(const PackageEntry& package, const ModelConfig& config, const std::shared_ptr<ServedModel>& served);
  void check_not_ending() const;  // kUnavailable
  bool serves(const PackageEntry& package) const;
  StartingWeights start_weights(const PackageEntry& package, LoadedModel& loaded);
  // The packages found for a model, and the first error that kept others from being opened.
  struct Found {
    std::vector<PackageEntry> versions;
    std::exception_ptr problem;
  };
  Found find(const std::string& name);
  void load_found(const Found& found, const std::string& name, bool again);
  // Adds the versions that are served of repositories that could not be read.
  void add_served(const std::string& name, FoundFiles& listed) const;
  // Whether repositories are looked at without anybody's asking.
  bool looks() const noexcept { return config_.watch.count() > 0 || !unread_.empty(); }
  void look();
  std::string take_changes(const FoundFiles& found);
  void load_new(const FoundFiles& found);
  void note_unread(const FoundFiles& found);
  void note_read(const FoundFiles& found);
  void follow_folders();
  // changed: something in the repositories had changed before the last look.
  Clock::duration until_next_look(bool changed) const noexcept;
  bool update_stem(const std::string& stem, const std::vector<PackageFile>& files);
  std::set<std::string> names_of(const std::string& stem) const;
  bool update_known(const std::string& stem, const std::vector<PackageFile>& files);

  const ServerConfig& config_;
  const PackageFinder& finder_;
  Repository& repository_;
  WeightStore& store_;
  IdleWatch& idle_watch_;
  OnDemand* const on_demand_;
  std::vector<PackageEntry> first_;
  const std::function<void(std::exception_ptr)> failed_;
  Loaded loaded_;
  std::filesystem::path trial_program_;
  TrialTurns turns_;
  RowChecks checks_{turns_.descriptor()};             // of models that are served, once the first are loaded
  std::unique_ptr<TrialProcess> waiting_;             // a child without a task, until then
  std::unique_ptr<LoadTrial> ahead_;                  // of the next one of first_
  const std::vector<std::filesystem::path> folders_;  // the repositories
  RepositoryWatch watch_;
  std::unique_ptr<FolderEvents> events_;                   // while repositories are watched
  bool followed_ = false;                                  // it tells of every change after the last look
  std::string events_problem_;                             // why not; the last one that was logged
  std::string watch_problem_;                              // the last one that was logged
  std::map<std::filesystem::path, Catalog::Away> unread_;  // repositories, in the last look

  Mutex mutex_;
  ConditionVariable wake_;
  std::deque<Task> tasks_ SCONCE_GUARDED_BY(mutex_);
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  bool changed_ SCONCE_GUARDED_BY(mutex_) = false;  // something in the repositories, since the last look
  std::atomic<bool> ending_{false};                 // for what takes long
  std::thread thread_;
};

}  // namespace sconce::server
