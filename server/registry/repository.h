// Repository: which models are served, in which versions and states.
//
// The control thread changes it, and whoever publishes weights by which a model becomes ready or not. Readers take
// snapshots and never wait for a load. A snapshot is immutable and keeps its models alive, so a request finishes with
// the model it began with.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sconce/mutex.h"
#include "server/registry/repositories/package_finder.h"
#include "server/registry/repositories/version_policy.h"
#include "server/registry/served_model.h"
#include "server/scheduling/batching/idle_watch.h"
#include "server/scheduling/pipelines/pipeline_spec.h"
#include "server/support/config.h"
#include "server/support/memory/model_budget.h"
#include "server/support/process/deferred_deleter.h"

namespace sconce::server {

struct PipelineSource;

class Catalog final : public DeletedLater {
 public:
  // kNotServing: loaded, but its weights are not to be served; it can be given others.
  enum class State : int8_t { kLoading, kReady, kNotServing, kUnavailable, kUnloaded };
  struct Version {
    PackageFile file;  // what is loaded, or was tried last
    State state = State::kLoading;
    // The error of the last load. With kReady, the model of an earlier load is still served.
    std::string reason;
    std::string held;  // with kNotServing, why its weights are not to be served
    // The server is not ready before this is. Set for models that it starts with, until they are loaded or unloaded.
    bool awaited = false;
    std::shared_ptr<ServedModel> model;  // if kReady or kNotServing
    // Of a pipeline: it is ready while all of its models are.
    std::shared_ptr<const PipelineSource> pipeline;
    std::shared_ptr<const PipelineSource> bound;  // what its `model` was made from
    bool loaded() const noexcept { return state == State::kReady || state == State::kNotServing; }
    int64_t version() const noexcept { return file.version; }
    // Why a served model answers with errors: somebody wrote its package in place. Empty: it works.
    std::string fault() const { return model && !model->pipeline() ? model->model().package_fault() : std::string(); }
  };
  struct Entry {
    std::string name;
    std::vector<Version> versions;  // ascending, at least one
    VersionLabels labels;
  };

  // Finds a version by its digits or its label in the URL; empty: the highest ready one, else the highest. kNotFound.
  const Version& find(std::string_view name, std::string_view version) const;
  // The same, if it is ready. Otherwise as Triton: kNotFound if no version was named and all are unloaded,
  // kUnavailable.
  const std::shared_ptr<ServedModel>& ready(std::string_view name, std::string_view version) const;
  // The same for administration, if it is loaded: ready or held.
  const std::shared_ptr<ServedModel>& loaded(std::string_view name, std::string_view version) const;
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  const Entry& entry(std::string_view name) const;  // kNotFound
  const Entry* look_up(std::string_view name) const noexcept;
  // Whether a pipeline has the model among its steps, or among those of its steps.
  bool needs(std::string_view pipeline, std::string_view model) const;
  // A repository that cannot be looked at, at an address or in a folder here.
  struct Away {
    std::string reason;
    // Its models are known from earlier, and served. Otherwise the server is not ready, and an unknown name is
    // kUnavailable.
    bool known = false;
  };
  // By the name that `serve` has.
  const std::map<std::string, Away>& away() const noexcept { return away_; }
  // Why nobody knows all models; empty: they are known.
  std::string why_unknown() const;
  // Whether every awaited model is there, none is lost for good, and, if there ever was a model, at least one is served
  // whose package is unchanged. False while anything is unknown.
  bool is_ready() const noexcept;

 private:
  friend class Repository;
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  [[noreturn]] void fail(std::string_view name, std::string_view version, const Version& found) const;
  Entry& edit(const std::string& name);  // makes one if there is none
  Version& edit(const PackageEntry& package);
  void erase(const std::string& name);
  void index();

  std::vector<Entry> entries_;  // by name
  std::map<std::string, Away> away_;
  bool had_models_ = false;  // at some time since the start
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> index_;
};

// What a pipeline is made from whenever its models change.
struct PipelineSource {
  std::shared_ptr<const PipelineSpec> spec;
  ModelConfig config;
  std::shared_ptr<Statistics> statistics;
  std::shared_ptr<const TritonConfig> triton;  // null: there is no config.pbtxt
};

// A model that is loaded but not served yet.
struct LoadedModel {
  ModelSignature interface;
  std::shared_ptr<Model> model;
  std::shared_ptr<StoredWeights> kept;   // null: its sets are not kept
  std::string refused;                   // why its weights are not to be served; empty: they may be
  std::shared_ptr<Golden> golden;        // null: it has no golden requests
  std::shared_ptr<const LoopPlan> loop;  // null: it has none
};

// What a model takes of the host's memory and of its devices', with `constants` bytes of weights.
ModelBudget::Bytes resident_bytes(const ModelSpec& spec, std::span<const Device> devices, uint64_t constants);

class Repository {
 public:
  // packages: loading at the start. threads: number of I/O threads.
  // idle_watch: is told of models' runs. budget: is told what is loaded; null: nobody is.
  Repository(const ServerConfig& config, TimerQueue& clock, IdleWatch& idle_watch, DeferredDeleter& reaper,
             const std::vector<PackageEntry>& packages, size_t threads, ModelBudget* budget = nullptr);
  // Something other than a model's run leaves memory behind, which the control thread shall give back. Any thread.
  void leaves_memory() noexcept { idle_watch_.ran(); }

  // Increases with each published snapshot. A reader that has the snapshot of this revision need not take snapshot()'s
  // lock.
  uint64_t revision() const noexcept { return revision_.load(std::memory_order_acquire); }
  std::shared_ptr<const Catalog> snapshot() const;

  // Call this when weights of a loaded model were published: it becomes ready, or is held.
  void weights_changed(const ServedModel& model);

  // Any thread: a repository cannot be looked at; an empty reason: it can be again.
  void set_away(const std::string& name, const Catalog::Away& away);

  // A model's settings, with what is said beside its package.
  ModelConfig config_of(const PackageEntry& package) const;
  // The devices that the model will be on.
  std::vector<Device> devices_of(const PackageEntry& package) const;

  // The rest is for the control thread, and for whoever has the model's turn (registry/on_demand.h).

  // Whether the file was rewritten in place since it was loaded or tried. It may then mix two contents, and only
  // checksums tell.
  bool was_rewritten(const PackageEntry& package) const;
  // Loads the package. Errors of Model::load and of the model's settings. `verify`: compares checksums of weights too.
  // kForbidden for settings that name what has no good signature.
  LoadedModel load(const PackageEntry& package, bool verify, const SignatureRule& signatures) const;
  // Sets its state to kLoading, unless it is served.
  void publish_loading(const PackageEntry& package);
  // Serves it in place of the earlier one. kFailedPrecondition if it would be held, and an earlier one is ready.
  // before: is called with the model before others can find it.
  using Before = std::function<void(const std::shared_ptr<ServedModel>&)>;
  void publish(const PackageEntry& package, LoadedModel loaded, const Before& before = {});
  // Serves a pipeline as soon as its models are ready, and whenever they are. Returns why it is not; empty: it is.
  std::string publish_pipeline(const PackageEntry& package);
  // Records a failed load. What was served stays.
  void publish_failure(const PackageEntry& package, std::string reason);
  // Unloads the model's versions that are not among these, and forgets those that were unloaded before.
  void keep_only(const std::string& name, std::span<const PackageEntry> packages);
  // Unloads all versions; requests under way finish. kNotFound.
  void unload(const std::string& name);
  // Unloads all versions and forgets the name.
  void forget(const std::string& name) { forget(std::span(&name, 1)); }
  void forget(std::span<const std::string> names);  // at once

  // Rung when a use of a model that may be unloaded has ended.
  const std::shared_ptr<RoomBell>& bell() const noexcept { return bell_; }

 private:
  using StatisticsKey = std::pair<std::string, int64_t>;
  template <class Edit>
  void change(Edit&& edit);
  void unload(const std::string& name, Catalog::Version& version) SCONCE_REQUIRES(changing_);
  std::shared_ptr<Statistics> statistics_of(const PackageEntry& package);
  void bind_pipelines(Catalog& next);
  bool bind(Catalog& next, const std::string& name, Catalog::Version& version);

  const ServerConfig& config_;
  TimerQueue& clock_;
  IdleWatch& idle_watch_;
  DeferredDeleter& reaper_;
  Mutex changing_;  // before mutex_
  const size_t threads_;
  ModelBudget* const budget_;
  const std::shared_ptr<RoomBell> bell_ = std::make_shared<RoomBell>();
  std::map<StatisticsKey, std::shared_ptr<Statistics>> statistics_
      SCONCE_GUARDED_BY(changing_);  // of what is served: survive a reload
  mutable Mutex mutex_;
  std::shared_ptr<const Catalog> catalog_ SCONCE_GUARDED_BY(mutex_);
  std::atomic<uint64_t> revision_{1};
};

}  // namespace sconce::server
