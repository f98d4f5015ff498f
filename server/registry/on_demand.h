// OnDemand: models that are known only by name until a request asks for them, and that may be evicted to free memory.
//
//   NameTable knows names ---- LoadQueue loads once for all waiters ---- ModelBudget selects what to evict ----
//   Repository
//
// A model is evicted only if it is not in use and nothing of it would be lost: see why_it_stays(). Thread-safe, except
// the functions for the loader thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/mutex.h"
#include "server/registry/lazy_load/load_queue.h"
#include "server/registry/model_use.h"
#include "server/registry/repositories/name_table.h"
#include "server/registry/repositories/package_finder.h"
#include "server/registry/repository.h"
#include "server/support/config.h"
#include "server/support/memory/model_budget.h"

namespace sconce::server::registry {

class OnDemand final : private LoadQueue::Loader {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State : int8_t { kKnown, kLoading, kFailed, kUnloaded };
  // A model that is not loaded.
  struct Entry {
    std::string name;
    std::vector<int64_t> versions;
    State state = State::kKnown;
    std::string reason;  // of kFailed
  };
  struct Counts {
    uint64_t known = 0, loading = 0, loaded = 0, failed = 0, unloaded = 0;  // numbers of models, current
    uint64_t loads = 0, failures = 0, evictions = 0, load_ns = 0;           // totals
    int64_t waiting = 0;                                                    // requests
  };

  // files: those known at start.
  OnDemand(const ServerConfig& config, const PackageFinder& finder, Repository& repository, ModelBudget& budget,
           std::span<const PackageFile> files);
  ~OnDemand();

  // Call both before the first request. load: loads and publishes a package's model. claimed: whether an admin
  // operation is using the model.
  using Load = std::function<void(const PackageEntry&)>;
  using Claimed = std::function<bool(const ServedModel&)>;
  void start(Load load) { load_ = std::move(load); }
  void ask_before_unloading(Claimed claimed) { claimed_ = std::move(claimed); }
  void stop() noexcept { demand_.stop(); }

  // For requests.

  // Whether the model is not loaded, but will be loaded on request.
  bool is_missing(const Catalog& catalog, std::string_view name) const;
  // Likewise for a model that was found in the catalog and cannot be used, because it is being unloaded.
  void ask(std::string_view name, LoadQueue::Waiter& waiter);
  bool cancel(LoadQueue::Waiter& waiter) noexcept { return demand_.cancel(waiter); }
  // How long a request that arrived at `start` waits.
  Clock::time_point deadline(std::string_view name, Clock::time_point start) const;

  // Models that are known and not loaded, by name.
  std::vector<Entry> missing(const Catalog& catalog) const;
  Entry status(const Catalog& catalog, std::string_view name) const;  // versions: empty for an unknown name
  Counts counts(const Catalog& catalog) const;
  const ModelBudget& budget() const noexcept { return budget_; }
  // Why a loaded model must not be evicted, whether it is in use or not; empty: it may be evicted.
  static std::string why_it_stays(const ServedModel& model);

  // For the loader thread.

  // While a thread holds the lock, no other thread loads or unloads the model.
  LoadQueue::LoadLock lock(const std::string& name) { return LoadQueue::LoadLock(demand_, name); }
  size_t size() const { return names_.size(); }
  bool has_stem(std::string_view stem) const { return !names_.files_of(stem).empty(); }
  // Replaces the files of a stem; empty: the stem is removed.
  void set_files(const std::string& stem, std::span<const PackageFile> files);
  // Call this before a manual load. The caller holds the model's LoadLock. Makes the model known and frees memory for
  // it.
  void prepare(const LoadQueue::LoadLock& load_lock, const std::string& name, std::span<const PackageEntry> packages);
  // Call this after a manual load.
  void finish(const std::string& name);
  // Unloads a model manually. It stays unloaded until a manual load or until its files change. Returns whether it is a
  // model that is loaded on demand.
  bool keep_unloaded(const std::string& name);
  // Loads the models of a pipeline that are not loaded. They are not evicted while the result lives. load_lock: the
  // pipeline's.
  std::vector<ModelUse> bring_steps(const LoadQueue::LoadLock& load_lock, const scheduling::PipelineSpec& spec);

 private:
  using Chain = std::vector<std::string>;
  class Try;

  void load(const std::string& name, const LoadQueue::Wanted& wanted) override;
  void load_known(const std::string& name, Try& attempt);
  std::vector<PackageFile> files_of(const std::string& name);
  std::vector<PackageEntry> open(const std::string& name);
  void load_packages(const std::string& name, std::span<const PackageEntry> packages, Try& attempt);
  void load_pipeline(std::span<const PackageEntry> pipelines, Try& attempt, Chain& chain) SCONCE_REQUIRES(pipelines_);
  void bring_steps(const scheduling::PipelineSpec& spec, Try& attempt, Chain& chain, std::vector<ModelUse>& uses)
      SCONCE_REQUIRES(pipelines_);
  bool is_loaded(std::string_view name) const;
  ModelBudget::Bytes bytes_of(std::span<const PackageEntry> packages) const;
  void make_room(const std::string& name, const ModelBudget::Bytes& bytes, Try& attempt);
  void by_hand(const LoadQueue::LoadLock& load_lock, const std::function<void(Try&)>& work);
  bool unload_for(const ModelBudget::Bytes& bytes);
  bool unload_unused(const std::string& name);
  std::string why_no_room() const;

  const ServerConfig& config_;
  const PackageFinder& finder_;
  Repository& repository_;
  ModelBudget& budget_;
  NameTable names_;
  Load load_;
  Claimed claimed_;
  std::atomic<uint64_t> evictions_{0}, file_changes_{0};
  Mutex pipelines_;  // one pipeline at a time, because pipelines that are steps of each other would deadlock
  Mutex unloading_;  // only one thread at a time retires models
  mutable Mutex mutex_;
  std::set<std::string, std::less<>> unloaded_by_hand_ SCONCE_GUARDED_BY(mutex_);
  LoadQueue demand_;  // destroyed first
};

}  // namespace sconce::server::registry
