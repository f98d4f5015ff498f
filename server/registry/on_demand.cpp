#include "server/registry/on_demand.h"

#include <algorithm>

#include "sconce/check.h"
#include "server/registry/model_weights.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "src/support/excerpt.h"

namespace sconce::server::registry {
namespace {

constexpr std::chrono::seconds kRemember{2};      // for failures
constexpr std::chrono::seconds kMaxPatience{10};  // while all models that could be evicted are in use

// Whether a request without a version would find a loaded version.
bool any_loaded(const Catalog::Entry* entry) noexcept {
  return entry != nullptr &&
         std::any_of(entry->versions.begin(), entry->versions.end(), [](const auto& v) { return v.loaded(); });
}

bool has_member(const ServedModel& pipeline, const std::vector<const ServedModel*>& models) {
  const auto members = pipeline.members();
  return std::any_of(members.begin(), members.end(), [&](const std::shared_ptr<ServedModel>& member) {
    return std::find(models.begin(), models.end(), member.get()) != models.end();
  });
}

constexpr auto kInUse = OnDemand::Clock::time_point::max();

// When a pipeline last used each of its steps; kInUse: in use now, or the pipeline may not be evicted.
std::map<const ServedModel*, OnDemand::Clock::time_point> uses_by_pipelines(const Catalog& catalog) {
  std::map<const ServedModel*, OnDemand::Clock::time_point> last_uses;
  const auto note = [&](const auto& self, const ServedModel& pipeline, OnDemand::Clock::time_point last) -> void {
    for (const std::shared_ptr<ServedModel>& member : pipeline.members()) {
      OnDemand::Clock::time_point& known = last_uses[member.get()];
      known = std::max(known, last);
      if (member->is_pipeline()) self(self, *member, last);
    }
  };
  for (const Catalog::Entry& entry : catalog.entries())
    for (const Catalog::Version& version : entry.versions) {
      if (!version.model || !version.model->is_pipeline()) continue;
      const ModelUses* const uses = version.model->uses();
      note(note, *version.model, uses == nullptr || uses->in_use() ? kInUse : uses->last_use());
    }
  return last_uses;
}

struct Leaving {
  std::vector<std::string> names;
  std::vector<std::shared_ptr<ServedModel>> models;
};

// The model's versions, and the pipelines that use them directly or indirectly.
Leaving leaving_with(const Catalog& catalog, const std::string& name) {
  Leaving leaving;
  std::vector<const ServedModel*> seen;
  const auto add = [&](const Catalog::Entry& entry) {
    leaving.names.push_back(entry.name);
    for (const Catalog::Version& version : entry.versions) {
      if (!version.model) continue;
      leaving.models.push_back(version.model);
      seen.push_back(version.model.get());
    }
  };
  const Catalog::Entry* const own = catalog.look_up(name);
  if (own == nullptr) return leaving;
  add(*own);
  for (bool more = true; more;) {
    more = false;
    for (const Catalog::Entry& entry : catalog.entries()) {
      if (std::find(leaving.names.begin(), leaving.names.end(), entry.name) != leaving.names.end()) continue;
      const bool depends = std::any_of(entry.versions.begin(), entry.versions.end(), [&](const auto& v) {
        return v.model && v.model->is_pipeline() && has_member(*v.model, seen);
      });
      if (!depends) continue;
      add(entry);
      more = true;
    }
  }
  return leaving;
}

// Retires all of the models, or none of them.
class Retirement {
 public:
  explicit Retirement(const std::vector<std::shared_ptr<ServedModel>>& models) {
    for (const std::shared_ptr<ServedModel>& model : models) {
      if (model->uses() == nullptr || !model->uses()->retire()) return;
      retired_.push_back(model);
    }
    complete_ = true;
  }
  Retirement(const Retirement&) = delete;
  ~Retirement() {
    if (gone_) return;
    for (const std::shared_ptr<ServedModel>& model : retired_) model->uses()->restore();
  }
  explicit operator bool() const noexcept { return complete_; }
  void are_gone() noexcept { gone_ = true; }

 private:
  std::vector<std::shared_ptr<ServedModel>> retired_;
  bool complete_ = false, gone_ = false;
};

// As bits for LoadQueue's line: one for the host's memory, one for each device's.
uint64_t kinds_of(const ModelBudget::Bytes& missing) noexcept {
  uint64_t kinds = 0;
  for (const auto& [device, bytes] : missing) kinds |= uint64_t{1} << (static_cast<unsigned>(device + 1) % 64);
  return kinds;
}

class Reservation {
 public:
  Reservation(ModelBudget& budget, const std::string& name) : budget_(budget), name_(name) {}
  Reservation(const Reservation&) = delete;
  ~Reservation() { budget_.release(name_); }

 private:
  ModelBudget& budget_;
  const std::string& name_;
};

}  // namespace

// One try to load a model, with results of earlier tries.
class OnDemand::Try {
 public:
  // wanted: the load's waiters. changes: number of file changes so far.
  Try(const LoadQueue::Wanted& wanted, uint64_t changes)
      : wanted_(wanted), opened_(std::static_pointer_cast<Opened>(wanted.loader_data())) {
    if (opened_ != nullptr && opened_->changes == changes) return;
    opened_ = std::make_shared<Opened>();
    opened_->changes = changes;
    wanted_.loader_data() = opened_;
  }
  bool wanted() const { return wanted_(); }
  // Only the load that has waited longest for a kind of memory evicts other models, so that small models do not starve
  // a large one.
  bool may_unload(uint64_t kinds) const { return wanted_.is_first_in_line(kinds); }
  void wait_for_room(uint64_t kinds) const { wanted_.wait_for_room(kinds); }
  // Packages are opened once for all tries, unless files have changed.
  const std::vector<PackageEntry>& packages(OnDemand& models, const std::string& name) {
    auto& known = opened_->packages;
    const auto at = known.find(name);
    return at != known.end() ? at->second : known.emplace(name, models.open(name)).first->second;
  }

 private:
  struct Opened {
    uint64_t changes = 0;
    std::map<std::string, std::vector<PackageEntry>, std::less<>> packages;
  };
  const LoadQueue::Wanted& wanted_;
  std::shared_ptr<Opened> opened_;
};

OnDemand::OnDemand(const ServerConfig& config, const PackageFinder& finder, Repository& repository, ModelBudget& budget,
                   std::span<const PackageFile> files)
    : config_(config),
      finder_(finder),
      repository_(repository),
      budget_(budget),
      demand_(*this, static_cast<size_t>(std::clamp<int64_t>(config.load_threads, 1, 256)),
              {.remember = kRemember, .patience = kMaxPatience}) {
  repository.bell()->on_ring([this] { demand_.look_again(); });
  budget.on_room([this] { demand_.retry(); });
  std::map<std::string, std::vector<PackageFile>> stems;
  for (const PackageFile& file : files) stems[file.stem].push_back(file);
  for (const auto& [stem, own] : stems) names_.set(stem, own);
}

OnDemand::~OnDemand() {
  repository_.bell()->on_ring({});
  budget_.on_room({});
  stop();
}

bool OnDemand::is_missing(const Catalog& catalog, std::string_view name) const {
  if (any_loaded(catalog.look_up(name))) return false;
  {
    const MutexLock lock(mutex_);
    if (unloaded_by_hand_.contains(name)) return false;
  }
  return names_.knows(name) || (finder_.may_have_more() && is_model_name(name));
}

void OnDemand::ask(std::string_view name, LoadQueue::Waiter& waiter) {
  demand_.ask(std::string(name), waiter, static_cast<size_t>(std::max<int64_t>(config_.load_queue, 0)));
}

OnDemand::Clock::time_point OnDemand::deadline(std::string_view name, Clock::time_point start) const {
  const std::chrono::nanoseconds limit = config_.model(name).request_timeout;
  return limit.count() == 0 ? Clock::time_point::max() : start + limit;
}

bool OnDemand::is_loaded(std::string_view name) const { return any_loaded(repository_.snapshot()->look_up(name)); }

void OnDemand::load(const std::string& name, const LoadQueue::Wanted& wanted) {
  Try attempt(wanted, file_changes_.load());
  load_known(name, attempt);
}

void OnDemand::load_known(const std::string& name, Try& attempt) {
  if (is_loaded(name)) return;
  const std::vector<PackageEntry>& packages = attempt.packages(*this, name);
  if (!packages.front().pipeline) return load_packages(name, packages, attempt);
  const MutexLock lock(pipelines_);
  Chain chain{name};
  load_pipeline(packages, attempt, chain);
}

// The files that may have a model. If the name is unknown, remote repositories are queried first.
std::vector<PackageFile> OnDemand::files_of(const std::string& name) {
  std::vector<PackageFile> files = names_.find(name);
  if (files.empty() && finder_.may_have_more()) {
    finder_.ask(name);
    for (const PackageFile& file : finder_.candidates(name).files)
      if (file.on_demand && (files.empty() || files.front().stem == file.stem)) files.push_back(file);
  }
  if (files.empty() || !finder_.is_elsewhere(files.front())) return files;
  const std::string stem = files.front().stem;
  files = finder_.prepared(files.front());
  if (names_.files_of(stem) != files) names_.set(stem, files);
  return files;
}

std::vector<PackageEntry> OnDemand::open(const std::string& name) {
  const std::vector<PackageFile> files = files_of(name);
  SCONCE_CHECK(!files.empty(), kNotFound, "Request for unknown model: '", excerpt(name), "' is not found");
  std::vector<PackageEntry> packages;
  std::vector<std::string> models;
  std::exception_ptr problem;
  for (const PackageFile& file : files) {
    const std::exception_ptr failure = exception_of([&] {
      for (PackageEntry& entry : finder_.open(file)) {
        models.push_back(entry.name);
        if (entry.name == name) packages.push_back(std::move(entry));
      }
    });
    if (failure && !problem) problem = failure;
  }
  if (!problem) names_.learn(files.front().stem, models);
  if (packages.empty()) {
    if (problem) std::rethrow_exception(problem);
    SCONCE_FAIL(kNotFound, "Request for unknown model: '", excerpt(name), "' is not found: the package ",
                files.front().path.native(), " has other models");
  }
  PackageFinder::sort(packages);
  return packages;
}

void OnDemand::load_packages(const std::string& name, std::span<const PackageEntry> packages, Try& attempt) {
  make_room(name, bytes_of(packages), attempt);
  const Reservation reservation(budget_, name);
  std::exception_ptr problem;
  bool any = false;
  for (const PackageEntry& package : packages) {
    const std::exception_ptr failure = exception_of([&] { load_(package); });
    any = any || !failure;
    if (failure && !problem) problem = failure;
  }
  if (!any) std::rethrow_exception(problem);
  // It may take more memory than its package indicated.
  while (budget_.exceeded() && unload_for({})) {
  }
}

void OnDemand::load_pipeline(std::span<const PackageEntry> pipelines, Try& attempt, Chain& chain) {
  std::vector<ModelUse> uses;
  for (const PackageEntry& pipeline : pipelines) {
    bring_steps(*pipeline.pipeline, attempt, chain, uses);
    load_(pipeline);
  }
}

std::vector<ModelUse> OnDemand::bring_steps(const LoadQueue::LoadLock& load_lock,
                                            const scheduling::PipelineSpec& spec) {
  std::vector<ModelUse> uses;
  by_hand(load_lock, [&](Try& attempt) {
    std::vector<ModelUse> found;
    const MutexLock lock(pipelines_);
    Chain chain;
    bring_steps(spec, attempt, chain, found);
    uses = std::move(found);
  });
  return uses;
}

// Retries while memory is short, in one line with requests.
void OnDemand::by_hand(const LoadQueue::LoadLock& load_lock, const std::function<void(Try&)>& work) {
  load_lock.with_room([&](const LoadQueue::Wanted& wanted) {
    Try attempt(wanted, file_changes_.load());
    work(attempt);
  });
}

void OnDemand::bring_steps(const scheduling::PipelineSpec& spec, Try& attempt, Chain& chain,
                           std::vector<ModelUse>& uses) {
  constexpr int kTries = 3;  // another thread may unload it meanwhile
  for (const scheduling::PipelineSpec::Step& step : spec.steps) {
    for (int i = 0; i < kTries; ++i) {
      const std::shared_ptr<const Catalog> catalog = repository_.snapshot();
      if (any_loaded(catalog->look_up(step.model))) {
        std::shared_ptr<ServedModel> member;
        // The code that binds the pipeline reports the error.
        if (!succeeds([&] { member = catalog->ready(step.model, step.version); })) break;
        ModelUse use(member, 0, Clock::now());
        if (use) {
          uses.push_back(std::move(use));
          break;
        }
      } else if (!is_missing(*catalog, step.model)) {
        break;
      }
      if (const std::vector<PackageEntry>& packages = attempt.packages(*this, step.model); packages.front().pipeline) {
        SCONCE_CHECK(std::find(chain.begin(), chain.end(), step.model) == chain.end(), kInvalidArgument,
                     "the pipeline is a step of itself [", spec.origin, "]");
        chain.push_back(step.model);
        load_pipeline(packages, attempt, chain);
        chain.pop_back();
      } else {
        const LoadQueue::LoadLock load_lock(demand_, step.model);
        if (!is_loaded(step.model)) load_packages(step.model, packages, attempt);
      }
    }
  }
}

ModelBudget::Bytes OnDemand::bytes_of(std::span<const PackageEntry> packages) const {
  ModelBudget::Bytes all;
  for (const PackageEntry& package : packages) {
    if (!package.package) continue;
    const ModelSpec& spec = package.package->model(package.model);
    for (const auto& [device, bytes] :
         resident_bytes(spec, repository_.devices_of(package), std::max<uint64_t>(spec.weights_bytes, 0)))
      all[device] += bytes;
  }
  return all;
}

void OnDemand::make_room(const std::string& name, const ModelBudget::Bytes& bytes, Try& attempt) {
  budget_.check(name, bytes);
  while (!budget_.reserve(name, bytes)) {
    repository_.bell()->await();
    const uint64_t kinds = kinds_of(budget_.missing(bytes));
    if (kinds == 0) continue;  // there is enough memory now
    if (attempt.may_unload(kinds) && unload_for(bytes)) continue;
    SCONCE_CHECK(attempt.wanted(), kCancelled, "nobody waits for model '", name, "' any more");
    const std::string reason = why_no_room();
    SCONCE_CHECK(reason.empty(), kUnavailable, "no room for model '", name, "': ", reason);
    attempt.wait_for_room(kinds);
    SCONCE_FAIL(kUnavailable, "no room for model '", name,
                "': all models that could make room are in use (settings memory_budget, device_memory_budget)");
  }
}

// Why waiting does not help; empty: it may help.
std::string OnDemand::why_no_room() const {
  const std::shared_ptr<const Catalog> catalog = repository_.snapshot();
  for (const Catalog::Entry& entry : catalog->entries())
    for (const Catalog::Version& version : entry.versions)
      if (version.model && version.model->uses() != nullptr && why_it_stays(*version.model).empty()) return {};
  // Other loads may fail, or load models that may be evicted.
  return demand_.counts().waiting > 1 ? std::string()
                                      : "none of the loaded models may be unloaded (the repository's index says why)";
}

// Returns whether a model was unloaded.
bool OnDemand::unload_for(const ModelBudget::Bytes& bytes) {
  std::vector<ModelBudget::Candidate> candidates;
  const std::shared_ptr<const Catalog> catalog = repository_.snapshot();
  const std::map<const ServedModel*, Clock::time_point> by_pipelines = uses_by_pipelines(*catalog);
  for (const Catalog::Entry& entry : catalog->entries()) {
    Clock::time_point last{};
    bool may_go = true;
    for (const Catalog::Version& version : entry.versions) {
      if (!version.model) continue;
      const ModelUses* const uses = version.model->uses();
      const auto at = by_pipelines.find(version.model.get());
      if (at != by_pipelines.end()) last = std::max(last, at->second);
      may_go = may_go && last != kInUse && uses != nullptr && !uses->in_use() && why_it_stays(*version.model).empty();
      if (!may_go) break;
      last = std::max(last, uses->last_use());
    }
    if (may_go) candidates.push_back({entry.name, last});
  }
  bool any = false;
  for (const std::string& name : budget_.victims(bytes, std::move(candidates))) any = unload_unused(name) || any;
  return any;
}

bool OnDemand::unload_unused(const std::string& name) {
  const LoadQueue::LoadLock load_lock = LoadQueue::LoadLock::attempt(demand_, name);
  if (!load_lock.held()) return false;
  const MutexLock lock(unloading_);
  const Leaving leaving = leaving_with(*repository_.snapshot(), name);
  if (leaving.models.empty()) return false;
  Retirement retirement(leaving.models);
  if (!retirement) return false;
  // Uses that began before the retirement have ended, so only administration can change this.
  for (const std::shared_ptr<ServedModel>& model : leaving.models)
    if (!why_it_stays(*model).empty() || (claimed_ && !model->is_pipeline() && claimed_(*model))) return false;
  repository_.forget(leaving.names);
  retirement.are_gone();
  evictions_.fetch_add(1, std::memory_order_relaxed);
  log_debug("model {} is evicted to free memory", name);
  return true;
}

std::string OnDemand::why_it_stays(const ServedModel& model) {
  if (model.uses() == nullptr) return "it is pinned, or not loaded on demand";
  const ModelWeights* const weights = model.find_weights();
  if (weights == nullptr) return {};
  const scheduling::ModelSignature& interface = model.interface();
  if (const scheduling::Sequences* const sequences = model.sequences()) {
    if (sequences->counts().live > 0) return "it has live sequences";
  } else if (interface.mutates_constants) {
    return "its runs leave state in its buffers";
  }
  if (model.pending() > 0) return "requests wait for it";
  if (model.watches_answers()) return "its answers are watched or recorded";
  if (weights->has_own_sets()) return "its named sets of weights are in memory only (setting sets_folder)";
  const Model& loaded = weights->model();
  const std::vector<WeightSetInfo> sets = loaded.weight_sets();
  if (std::any_of(sets.begin(), sets.end(), [](const WeightSetInfo& s) { return s.state == WeightState::kStaged; }))
    return "a set of weights is staged";
  if (loaded.weight_version() == weights->first_weight_version()) return {};
  if (!weights->stored()) return "weights that were pushed to it are not stored on disk (setting weights_store)";
  const weights::StoredWeights::Status stored = weights->stored()->status();
  return stored.problem.empty() && stored.weight_version == loaded.weight_version()
             ? std::string()
             : "weights that were pushed to it are not on disk yet";
}

std::vector<OnDemand::Entry> OnDemand::missing(const Catalog& catalog) const {
  const std::map<std::string, LoadQueue::Status, std::less<>> statuses = demand_.statuses();
  std::vector<Entry> entries;
  for (NameTable::Known& known : names_.all()) {
    if (catalog.look_up(known.name) != nullptr) continue;
    Entry entry{std::move(known.name), std::move(known.versions), State::kKnown, {}};
    if (const auto at = statuses.find(entry.name); at != statuses.end()) {
      entry.state = at->second.state == LoadQueue::State::kFailed ? State::kFailed : State::kLoading;
      entry.reason = at->second.reason;
    }
    entries.push_back(std::move(entry));
  }
  const MutexLock lock(mutex_);
  for (Entry& entry : entries)
    if (unloaded_by_hand_.contains(entry.name)) entry.state = State::kUnloaded;
  return entries;
}

OnDemand::Entry OnDemand::status(const Catalog& catalog, std::string_view name) const {
  Entry entry;
  if (!is_missing(catalog, name)) return entry;
  entry.name = name;
  for (const PackageFile& file : names_.find(name)) entry.versions.push_back(file.version);
  const std::map<std::string, LoadQueue::Status, std::less<>> statuses = demand_.statuses();
  if (const auto at = statuses.find(name); at != statuses.end()) {
    entry.state = at->second.state == LoadQueue::State::kFailed ? State::kFailed : State::kLoading;
    entry.reason = at->second.reason;
  }
  return entry;
}

OnDemand::Counts OnDemand::counts(const Catalog& catalog) const {
  Counts counts;
  for (const Entry& entry : missing(catalog)) {
    counts.known += entry.state == State::kKnown;
    counts.loading += entry.state == State::kLoading;
    counts.failed += entry.state == State::kFailed;
    counts.unloaded += entry.state == State::kUnloaded;
  }
  for (const Catalog::Entry& entry : catalog.entries()) {
    if (!entry.versions.front().file.on_demand) continue;
    ++(any_loaded(&entry) ? counts.loaded : counts.unloaded);
  }
  const LoadQueue::Counts so_far = demand_.counts();
  counts.loads = so_far.loads;
  counts.failures = so_far.failures;
  counts.load_ns = so_far.load_ns;
  counts.waiting = so_far.waiting;
  counts.evictions = evictions_.load(std::memory_order_relaxed);
  return counts;
}

void OnDemand::set_files(const std::string& stem, std::span<const PackageFile> files) {
  std::vector<std::string> names = names_.names_of(stem);
  names.push_back(stem);
  names_.set(stem, files);
  file_changes_.fetch_add(1);
  for (const std::string& name : names) demand_.forget_failure(name);
  const MutexLock lock(mutex_);
  for (const std::string& name : names) unloaded_by_hand_.erase(name);
}

void OnDemand::prepare(const LoadQueue::LoadLock& load_lock, const std::string& name,
                       std::span<const PackageEntry> packages) {
  if (packages.empty() || !packages.front().file.on_demand) return;
  const std::string& stem = packages.front().file.stem;
  std::vector<PackageFile> files;
  for (const PackageEntry& package : packages) files.push_back(package.file);
  if (names_.files_of(stem) != files) set_files(stem, files);
  {
    const MutexLock lock(mutex_);
    unloaded_by_hand_.erase(name);
  }
  if (packages.front().pipeline || is_loaded(name)) return;
  by_hand(load_lock, [&](Try& attempt) { make_room(name, bytes_of(packages), attempt); });
}

void OnDemand::finish(const std::string& name) {
  budget_.release(name);
  demand_.forget_failure(name);
}

bool OnDemand::keep_unloaded(const std::string& name) {
  if (!names_.knows(name)) return false;
  const MutexLock lock(mutex_);
  unloaded_by_hand_.insert(name);
  return true;
}

}  // namespace sconce::server::registry
