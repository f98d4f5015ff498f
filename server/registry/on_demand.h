// OnDemand: models that are known by name alone until a request asks for one, and that go again to make room.
//
//   NameTable knows names ---- LoadQueue loads one for all who wait ---- ModelBudget chooses who goes ---- Repository
//
// A model goes only if nothing uses it and nothing of it would be lost: see why_it_stays(). Thread-safe, but what is
// for the control thread.
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

namespace sconce::server {

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
    uint64_t known = 0, loading = 0, loaded = 0, failed = 0, unloaded = 0;  // models, now
    uint64_t loads = 0, failures = 0, evictions = 0, load_ns = 0;           // so far
    int64_t waiting = 0;                                                    // requests
  };

  // files: those that are known at the start.
  OnDemand(const ServerConfig& config, const PackageFinder& finder, Repository& repository, ModelBudget& budget,
           std::span<const PackageFile> files);
  ~OnDemand();

  // Before the first request. load: loads and publishes a package's model. claimed: whether administration works on it.
  using Load = std::function<void(const PackageEntry&)>;
  using Claimed = std::function<bool(const ServedModel&)>;
  void start(Load load) { load_ = std::move(load); }
  void ask_before_unloading(Claimed claimed) { claimed_ = std::move(claimed); }
  void stop() noexcept { demand_.stop(); }

  // For requests.

  // Whether the model is not loaded, but will be if someone asks for it.
  bool is_missing(const Catalog& catalog, std::string_view name) const;
  // The same for a model that was found in the catalog and could not be used: it is being unloaded.
  void ask(std::string_view name, LoadQueue::Waiter& waiter);
  bool cancel(LoadQueue::Waiter& waiter) noexcept { return demand_.cancel(waiter); }
  // How long a request that came at `start` waits.
  Clock::time_point deadline(std::string_view name, Clock::time_point start) const;

  // What is known and not loaded, by name.
  std::vector<Entry> missing(const Catalog& catalog) const;
  Entry status(const Catalog& catalog, std::string_view name) const;  // versions: empty if it is not known
  Counts counts(const Catalog& catalog) const;
  const ModelBudget& budget() const noexcept { return budget_; }
  // Why a loaded model is not unloaded to make room, whether it is used or not; empty: it may be.
  static std::string why_it_stays(const ServedModel& model);

  // For the control thread.

  // While somebody has the turn, nobody else loads or unloads the model.
  LoadQueue::Turn turn(const std::string& name) { return LoadQueue::Turn(demand_, name); }
  size_t size() const { return names_.size(); }
  bool has_stem(std::string_view stem) const { return !names_.files_of(stem).empty(); }
  // The files of a stem are now these; none: it is gone.
  void set_files(const std::string& stem, std::span<const PackageFile> files);
  // Call before a load by hand, with the model's turn: makes the model known, and room for it.
  void prepare(const LoadQueue::Turn& turn, const std::string& name, std::span<const PackageEntry> packages);
  // Call after it.
  void finish(const std::string& name);
  // Somebody unloads a model by hand. It stays unloaded until somebody loads it by hand or its files change. Returns
  // whether it is one that is loaded on demand.
  bool keep_unloaded(const std::string& name);
  // Loads the models of a pipeline, unless they are loaded. While the result lives, they stay. turn: the pipeline's.
  std::vector<ModelUse> bring_steps(const LoadQueue::Turn& turn, const PipelineSpec& spec);

 private:
  using Chain = std::vector<std::string>;
  class Try;

  void load(const std::string& name, const LoadQueue::Wanted& wanted) override;
  void load_known(const std::string& name, Try& attempt);
  std::vector<PackageFile> files_of(const std::string& name);
  std::vector<PackageEntry> open(const std::string& name);
  void load_packages(const std::string& name, std::span<const PackageEntry> packages, Try& attempt);
  void load_pipeline(std::span<const PackageEntry> pipelines, Try& attempt, Chain& chain) SCONCE_REQUIRES(pipelines_);
  void bring_steps(const PipelineSpec& spec, Try& attempt, Chain& chain, std::vector<ModelUse>& uses)
      SCONCE_REQUIRES(pipelines_);
  bool is_loaded(std::string_view name) const;
  ModelBudget::Bytes bytes_of(std::span<const PackageEntry> packages) const;
  void make_room(const std::string& name, const ModelBudget::Bytes& bytes, Try& attempt);
  void by_hand(const LoadQueue::Turn& turn, const std::function<void(Try&)>& work);
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
  Mutex pipelines_;  // one pipeline at a time: those that are steps of each other must not wait for each other
  Mutex unloading_;  // retiring models, one thread at a time
  mutable Mutex mutex_;
  std::set<std::string, std::less<>> kept_unloaded_ SCONCE_GUARDED_BY(mutex_);
  LoadQueue demand_;  // ends first
};

}  // namespace sconce::server
