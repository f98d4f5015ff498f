// Repository: the served models, their versions and states.
//
// It is changed by the loader thread, and by threads that publish weights which make a model ready or not. Readers take
// snapshots and never wait for a load. A snapshot is immutable and keeps its models alive, so a request finishes with
// the model on which it started.
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

namespace sconce::server::registry {

struct LoadedModel;
struct PipelineSource;

class Catalog final : public DeletedLater {
 public:
  // kNotServing: loaded, but its weights must not be served; it accepts new weights.
  enum class State : int8_t { kLoading, kReady, kNotServing, kUnavailable, kUnloaded };
  struct Version {
    PackageFile file;  // the loaded file, or the last one that was tried
    State state = State::kLoading;
    // The error of the last load. With kReady, the model of an earlier load is still served.
    std::string reason;
    std::string held;  // with kNotServing, why its weights must not be served
    // The server is not ready until this version is. Set for models that are loaded at start, until they are loaded or
    // unloaded.
    bool awaited = false;
    std::shared_ptr<ServedModel> model;  // if kReady or kNotServing
    // For a pipeline: it is ready while all of its models are.
    std::shared_ptr<const PipelineSource> pipeline;
    std::shared_ptr<const PipelineSource> bound;  // the source from which `model` was made
    bool loaded() const noexcept { return state == State::kReady || state == State::kNotServing; }
    int64_t version() const noexcept { return file.version; }
    // Why a served model answers with errors: its package was overwritten in place. Empty: no fault.
    std::string fault() const {
      return model && !model->is_pipeline() ? model->model().package_fault() : std::string();
    }
  };
  struct Entry {
    std::string name;
    std::vector<Version> versions;  // ascending, at least one
    VersionLabels labels;
  };

  // Finds a version by the digits or the label in the URL; empty: the highest ready version, else the highest.
  // kNotFound.
  const Version& find(std::string_view name, std::string_view version) const;
  // Likewise, if the version is ready. Otherwise as in Triton: kNotFound if no version was named and all are unloaded,
  // else kUnavailable.
  const std::shared_ptr<ServedModel>& ready(std::string_view name, std::string_view version) const;
  // Likewise for administration, if the version is loaded: ready or not serving.
  const std::shared_ptr<ServedModel>& loaded(std::string_view name, std::string_view version) const;
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  const Entry& entry(std::string_view name) const;  // kNotFound
  const Entry* look_up(std::string_view name) const noexcept;
  // Whether the model is a direct or indirect step of the pipeline.
  bool needs(std::string_view pipeline, std::string_view model) const;
  // A repository, remote or local, that cannot be read.
  struct Away {
    std::string reason;
    // Its models are known from an earlier read, and served. Otherwise the server is not ready, and an unknown name is
    // kUnavailable.
    bool known = false;
  };
  // By the name in `serve`.
  const std::map<std::string, Away>& away() const noexcept { return away_; }
  // Why the list of models is incomplete; empty: it is complete.
  std::string why_unknown() const;
  // Whether all awaited models are loaded, no model has failed permanently, and, if there ever was a model, at least
  // one with an unchanged package is served. False while the list of models is incomplete.
  bool is_ready() const noexcept;

 private:
  friend class Repository;
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  [[noreturn]] void fail(std::string_view name, std::string_view version, const Version& found) const;
  Entry& edit(const std::string& name);  // adds an entry if there is none
  Version& edit(const PackageEntry& package);
  void erase(const std::string& name);
  void index();

  std::vector<Entry> entries_;  // by name
  std::map<std::string, Away> away_;
  bool had_models_ = false;  // at any time since the start
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> index_;
};

// What a pipeline is made from whenever one of its models changes.
struct PipelineSource {
  std::shared_ptr<const scheduling::PipelineSpec> spec;
  ModelConfig config;
  std::shared_ptr<scheduling::Statistics> statistics;
  std::shared_ptr<const scheduling::TritonConfig> triton;  // null: no config.pbtxt
};

// The memory that a model needs on the host and on its devices, with `constants` bytes of weights.
ModelBudget::Bytes resident_bytes(const ModelSpec& spec, std::span<const Device> devices, uint64_t constants);

class Repository {
 public:
  // packages: to be loaded at start. threads: number of I/O threads. idle_watch: notified of models' runs. budget:
  // notified of loaded models; may be null.
  Repository(const ServerConfig& config, TimerQueue& clock, scheduling::IdleWatch& idle_watch, DeferredDeleter& reaper,
             const std::vector<PackageEntry>& packages, size_t threads, ModelBudget* budget = nullptr);
  // Something other than a model's run has left memory that the loader thread should return to the system. Any thread.
  void leaves_memory() noexcept { idle_watch_.ran(); }

  // Increases with each published snapshot. A reader that has the snapshot of this revision can skip snapshot() and its
  // lock.
  uint64_t revision() const noexcept { return revision_.load(std::memory_order_acquire); }
  std::shared_ptr<const Catalog> snapshot() const;

  // Call this after weights of a loaded model were published: the model becomes kReady or kNotServing.
  void weights_changed(const ServedModel& model);

  // Any thread: a repository cannot be read; with an empty reason, it can be read again.
  void set_away(const std::string& name, const Catalog::Away& away);

  // A model's settings, with those given beside its package.
  ModelConfig config_of(const PackageEntry& package) const;
  // The devices on which the model will be loaded.
  std::vector<Device> devices_of(const PackageEntry& package) const;

  // All following functions are for the loader thread, and for the holder of the model's LoadLock
  // (registry/on_demand.h).

  // Whether the file was overwritten in place since it was loaded or tried. It may then mix old and new content, which
  // only checksums detect.
  bool was_rewritten(const PackageEntry& package) const;
  // Loads the package. Errors of Model::load and of the model's settings. verify: compares checksums of weights too.
  // kForbidden for settings that name a file without a valid signature.
  LoadedModel load(const PackageEntry& package, bool verify, const signing::SignatureRule& signatures) const;
  // Sets the state to kLoading, unless the model is served.
  void publish_loading(const PackageEntry& package);
  // Serves the model in place of the previous one. kFailedPrecondition if its weights must not be served and the
  // previous model is ready. before: called with the model before other threads can find it.
  using Before = std::function<void(const std::shared_ptr<ServedModel>&)>;
  void publish(const PackageEntry& package, LoadedModel loaded, const Before& before = {});
  // Serves a pipeline whenever its models are ready. Returns the reason why it is not ready now; empty: it is.
  std::string publish_pipeline(const PackageEntry& package);
  // Records a failed load. The served version stays.
  void publish_failure(const PackageEntry& package, std::string reason);
  // Unloads the model's versions that are not in `packages`, and forgets those that were already unloaded.
  void keep_only(const std::string& name, std::span<const PackageEntry> packages);
  // Unloads all versions; requests in progress finish. kNotFound.
  void unload(const std::string& name);
  // Unloads all versions and forgets the name.
  void forget(const std::string& name) { forget(std::span(&name, 1)); }
  void forget(std::span<const std::string> names);  // in one snapshot

  // Rung when a use of a model that may be evicted has ended.
  const std::shared_ptr<RoomBell>& bell() const noexcept { return bell_; }

 private:
  using StatisticsKey = std::pair<std::string, int64_t>;
  template <class Edit>
  void change(Edit&& edit);
  void unload(const std::string& name, Catalog::Version& version) SCONCE_REQUIRES(changing_);
  std::shared_ptr<scheduling::Statistics> statistics_of(const PackageEntry& package);
  void bind_pipelines(Catalog& next);
  bool bind(Catalog& next, const std::string& name, Catalog::Version& version);

  const ServerConfig& config_;
  TimerQueue& clock_;
  scheduling::IdleWatch& idle_watch_;
  DeferredDeleter& reaper_;
  Mutex changing_;  // before mutex_
  const size_t threads_;
  ModelBudget* const budget_;
  const std::shared_ptr<RoomBell> bell_ = std::make_shared<RoomBell>();
  std::map<StatisticsKey, std::shared_ptr<scheduling::Statistics>> statistics_
      SCONCE_GUARDED_BY(changing_);  // of served versions; they survive a reload
  mutable Mutex mutex_;
  std::shared_ptr<const Catalog> catalog_ SCONCE_GUARDED_BY(mutex_);
  std::atomic<uint64_t> revision_{1};
};

}  // namespace sconce::server::registry
