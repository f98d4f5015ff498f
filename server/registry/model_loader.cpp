#include "server/registry/model_loader.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sconce/check.h"
#include "server/registry/package_model.h"
#include "server/registry/warm_up_requests.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "server/support/terminal/load_progress.h"
#include "src/support/excerpt.h"

namespace sconce::server::registry {
namespace {

constexpr size_t kMaxTasks = 1000;
constexpr std::chrono::seconds kRest{10};  // interval of freeing models' unused memory

std::string text_of(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown exception";
  }
}

// Whether this file is served and no later attempt to load it has failed.
bool is_served(const Catalog& catalog, const PackageEntry& package) {
  const Catalog::Entry* entry = catalog.look_up(package.name);
  return entry && std::any_of(entry->versions.begin(), entry->versions.end(), [&](const Catalog::Version& v) {
           return v.loaded() && v.reason.empty() && v.file == package.file;
         });
}

// Logs one line with all ignored fields of a config.pbtxt.
void name_ignored(const PackageEntry& package) {
  std::string text;
  const scheduling::TritonConfig& triton = *package.triton;
  if (!triton.name.empty() && triton.name != package.file.stem)
    text = "name '" + triton.name + "': the folder's is served";
  for (const std::string& ignored : triton.ignored) text += (text.empty() ? "" : ", ") + ignored;
  if (!text.empty())
    log_warn("model {} version {}: {} is not followed in: {}", package.name, package.file.version,
             package.file.config.native(), printable(text));
}

// The files from a repository; the watch ignores packages that are named individually on the command line.
std::vector<PackageFile> repository_files_of(const std::vector<PackageEntry>& packages, const PackageFinder& finder,
                                             std::span<const PackageFile> known) {
  std::vector<PackageFile> files(known.begin(), known.end());
  for (const PackageEntry& package : packages) {
    if (!package.file.on_demand && finder.in_repository(package.file) &&
        std::find(files.begin(), files.end(), package.file) == files.end())
      files.push_back(package.file);
  }
  return files;
}

// Each file counts once, even with several models.
std::vector<LoadProgress::Part> sizes_of(const std::vector<PackageEntry>& packages) {
  std::vector<LoadProgress::Part> parts;
  std::set<std::filesystem::path> counted;
  for (const PackageEntry& package : packages) {
    std::error_code problem;
    const bool first = counted.insert(package.file.path).second;
    const uintmax_t bytes = first ? std::filesystem::file_size(package.file.path, problem) : 0;
    parts.push_back({package.name, problem ? 0 : bytes});
  }
  return parts;
}

// Whether a second read of the directory finds the same files of the model, or files of another stem with its name. A
// directory that changes while it is read may seem empty, which must not unload its models.
bool sees(const std::vector<PackageEntry>& found, const std::string& stem, const std::vector<PackageFile>& seen) {
  if (found.empty() || found.front().file.stem != stem) return !found.empty();
  return std::all_of(seen.begin(), seen.end(), [&](const PackageFile& file) {
    return std::any_of(found.begin(), found.end(), [&](const PackageEntry& entry) { return entry.file == file; });
  });
}

}  // namespace

ModelLoader::ModelLoader(const ServerConfig& config, const PackageFinder& finder, Repository& repository,
                         weights::WeightStore& store, scheduling::IdleWatch& idle_watch,
                         std::vector<PackageEntry> packages, std::function<void(std::exception_ptr)> failed,
                         OnDemand* on_demand, std::span<const PackageFile> files)
    : config_(config),
      finder_(finder),
      repository_(repository),
      store_(store),
      idle_watch_(idle_watch),
      on_demand_(on_demand),
      first_(std::move(packages)),
      failed_(std::move(failed)),
      folders_(finder.repositories()),
      watch_(repository_files_of(first_, finder, files)) {
  // Models come before the pipelines that use them; pipelines that use each other may come in any order.
  std::stable_partition(first_.begin(), first_.end(), [](const PackageEntry& entry) { return !entry.pipeline; });
  if (on_demand_) on_demand_->start([this](const PackageEntry& package) { load(package); });
}

std::vector<PackageEntry> ModelLoader::open(const PackageFinder& finder, const std::vector<PackageFile>& files,
                                            bool exit_on_error) {
  std::vector<PackageEntry> entries;
  for (const PackageFile& file : files) {
    try {
      for (PackageEntry& entry : finder.open(file)) entries.push_back(std::move(entry));
    } catch (...) {
      if (exit_on_error) throw;
      entries.push_back({.name = file.stem, .file = file});
    }
  }
  PackageFinder::sort(entries);
  return entries;
}

void ModelLoader::try_with(std::filesystem::path program, std::unique_ptr<TrialProcess> waiting) {
  trial_program_ = std::move(program);
  waiting_ = std::move(waiting);
  if (!first_.empty()) ahead_ = begin_ahead(first_.front());
}

void ModelLoader::start() {
  thread_ = std::thread([this] { run(); });
}

void ModelLoader::end_loads() noexcept {
  ending_ = true;
  trial_slots_.stop();
}

void ModelLoader::stop() {
  end_loads();
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (on_demand_) on_demand_->stop();
  if (thread_.joinable()) thread_.join();
  checks_.end();
  events_.reset();
}

void ModelLoader::submit(std::function<void()> work, Done done) {
  {
    const MutexLock lock(mutex_);
    SCONCE_CHECK(!stopping_, kUnavailable, "the server is ending");
    SCONCE_CHECK(tasks_.size() < kMaxTasks, kQueueFull, "too many models wait to be loaded or unloaded: ", kMaxTasks);
    tasks_.push_back({std::move(work), std::move(done)});
  }
  wake_.notify_one();
}

// Waits for a task, the shutdown, or one of the times. While no model runs, there is no memory to free.
void ModelLoader::wait_for_work(Clock::time_point next_look, Clock::time_point next_rest) {
  const bool rested = idle_watch_.asleep();
  const auto wakes = [&] {
    mutex_.assert_held();
    return stopping_ || !tasks_.empty() || idle_watch_.asleep() != rested || changed_;
  };
  if (rested && !looks()) {
    while (!wakes()) wake_.wait(mutex_);
    return;
  }
  Clock::time_point at_last = rested ? next_look : next_rest;
  if (looks()) at_last = std::min(next_look, at_last);
  while (!wakes() && wake_.wait_until(mutex_, at_last) == std::cv_status::no_timeout) {
  }
}

void ModelLoader::run() {
  load_first();
  Clock::time_point looked = Clock::now(), next_look = looked + until_next_look(true), next_rest = looked + kRest;
  bool rested = false;   // no model has run since its memory was freed
  bool changed = false;  // something in the repositories has changed since the last poll
  for (;;) {
    Task task;
    {
      const MutexLock lock(mutex_);
      wait_for_work(next_look, next_rest);
      if (stopping_) break;
      // Not more often than the setting says, however many changes there are.
      if (std::exchange(changed_, false)) {
        changed = true;
        next_look = std::min(next_look, looked + config_.watch);
      }
      if (!tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
    }
    if (task.work) perform(std::move(task));
    if (looks() && Clock::now() >= next_look) {
      // If memory is short, there may be none for the reason either: unseen changes are polled again.
      const bool seen = succeeds([this] { look(); });
      looked = Clock::now();
      next_look = looked + until_next_look(std::exchange(changed, false) || !seen);
    }
    if (rested && !idle_watch_.asleep()) {
      rested = false;
      next_rest = Clock::now() + kRest;
    }
    if (!rested && Clock::now() >= next_rest) {
      for (const Catalog::Entry& entry : repository_.snapshot()->entries())
        for (const Catalog::Version& version : entry.versions)
          if (version.model && !version.model->is_pipeline()) version.model->model().give_back_idle_memory();
      next_rest = Clock::now() + kRest;
      rested = idle_watch_.end_period();
    }
  }
  idle_watch_.ran();  // otherwise this thread would not be woken again
  // Refuses the remaining tasks. They are taken one at a time, because a second list may not fit in memory.
  for (;;) {
    Task task;
    {
      const MutexLock lock(mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task.work = [] { SCONCE_FAIL(kUnavailable, "the server is ending"); };
    perform(std::move(task));
  }
}

void ModelLoader::perform(Task task) {
  std::exception_ptr problem = exception_of(task.work);
  task.work = nullptr;
  task.done(std::move(problem));  // the receiver drops it last
}

void ModelLoader::load_first() {
  for (const PackageEntry& package : first_)
    if (package.pipeline) succeeds([&] { repository_.publish_pipeline(package); });
  std::optional<LoadProgress> progress;
  succeeds([&] { progress.emplace(sizes_of(first_)); });  // without memory for it, nothing is shown
  for (size_t i = 0; i < first_.size(); ++i) {
    const PackageEntry& package = first_[i];
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
    }
    if (progress) progress->next();
    std::unique_ptr<LoadTrial> trial = std::move(ahead_);
    if (i + 1 < first_.size()) ahead_ = begin_ahead(first_[i + 1]);
    std::optional<LoadQueue::LoadLock> load_lock;
    try {
      if (on_demand_) load_lock.emplace(on_demand_->lock(package.name));
      if (package.pipeline && on_demand_) {
        const std::vector<ModelUse> steps = on_demand_->bring_steps(*load_lock, *package.pipeline);
        load(package);
      } else {
        load(package, std::move(trial));
      }
    } catch (...) {
      if (ending_) return;  // because of a signal, which is no failure
      if (config_.exit_on_error) return failed_(std::current_exception());
      watch_.failed(package.file.stem);
    }
  }
  first_ = {};
  if (on_demand_) log_info("{} models are known and loaded on demand", on_demand_->size());
  if (!ending_ && repository_.snapshot()->is_ready()) log_info("ready");
  checks_.start(trial_program_, std::move(waiting_));
}

void ModelLoader::load(const PackageEntry& package, std::unique_ptr<LoadTrial> trial) {
  idle_watch_.ran();  // it will be tried on dummy inputs
  try {
    const bool rewritten = repository_.was_rewritten(package);
    if (!package.file.on_demand) repository_.publish_loading(package);
    if (!package.opened()) {
      // Throws the reason. If the package can be opened by now, the next load handles it, because it may hold several
      // models.
      finder_.open(package.file);
      SCONCE_FAIL(kUnavailable, "the package could not be opened");
    }
    if (package.triton) name_ignored(package);
    if (package.pipeline) {
      const std::string reason = repository_.publish_pipeline(package);
      SCONCE_CHECK(reason.empty(), kUnavailable, reason);
      return;
    }
    const ModelConfig config = repository_.config_of(package);
    if (!trial) {
      trial = std::make_unique<LoadTrial>(trial_slots_, trial_program_, package, config);
      trial->begin(serves_any());
    }
    check_not_ending();
    LoadedModel loaded = repository_.load(package, rewritten, finder_.signatures());
    trial->finish();
    trial->warm_up(*loaded.model);
    trial->take(loaded.interface);
    loaded.stored = store_.of(package.name, package.file.version);
    weights::StartingWeights start = start_weights(package, loaded);
    if (!config.loop.empty()) {
      loaded.loop = std::make_shared<const scheduling::LoopPlan>(
          scheduling::plan_loop(scheduling::read_loop(read_settings_text(config.loop), config.loop), loaded.interface,
                                scheduling::has_sequences(loaded.interface, config)));
    }
    if (!config.golden.empty())
      loaded.golden = std::make_shared<weights::Golden>(weights::read_golden(config, loaded.interface, *loaded.model));
    run_warm_up_requests(*loaded.model, loaded.interface, config.warm_up_requests,
                         package.triton ? std::span<const scheduling::TritonWarmUp>(package.triton->warm_ups)
                                        : std::span<const scheduling::TritonWarmUp>(),
                         [this] { check_not_ending(); });
    const ModelInfo& info = loaded.model->info();
    const std::string ready =
        fmt::format("model {} version {} is ready: {} replicas, {} weight bytes, loaded in {:.1f} ms", package.name,
                    package.file.version, info.replicas, info.constant_bytes,
                    std::chrono::duration<double, std::milli>(info.load_time).count());
    // Models that are loaded and evicted on demand would fill the log.
    if (package.file.on_demand && !config.pinned)
      log_debug("{}", ready);
    else
      log_info("{}", ready);
    if (const std::string missing = trial->not_learned(); !missing.empty())
      log_info("model {}: {}", package.name, printable(missing));
    const auto tell = [&](const std::shared_ptr<ServedModel>& served) {
      if (loaded_) loaded_(served, start);
      if (trial->ended_well()) check_rows(package, config, served);
    };
    if (!loaded.stored) return repository_.publish(package, std::move(loaded), tell);
    for (const std::shared_ptr<weights::StoredWeights> stored = loaded.stored;;) {
      {
        const MutexLock lock(stored->write_mutex());
        if (stored->revision() == start.revision) {
          repository_.publish(package, std::move(loaded), tell);
          return stored->report(start.stored.weight_version, std::move(start.stored.problem));
        }
      }
      // Meanwhile weights were committed to the model that this one replaces.
      start = start_weights(package, loaded);
    }
  } catch (...) {
    const std::string reason = text_of(std::current_exception());
    if (ending_)
      log_info("model {} version {} is not loaded: the server is ending", package.name, package.file.version);
    else
      log_error("model {} version {} cannot be loaded: {}", package.name, package.file.version, printable(reason));
    // An earlier load may still be guarded.
    if (const auto stored = store_.of(package.name, package.file.version); stored && !serves(package))
      succeeds([&] { weights::leave_watch(*stored); });
    if (ending_) throw;
    // For a model that is loaded on demand, waiters are notified, and OnDemand remembers the failure for a while.
    if (!package.file.on_demand || repository_.snapshot()->look_up(package.name))
      repository_.publish_failure(package, reason);
    throw;
  }
}

void ModelLoader::check_not_ending() const { SCONCE_CHECK(!ending_, kUnavailable, "the server is ending"); }

// Whether a load of this version is served, from any file.
bool ModelLoader::serves(const PackageEntry& package) const {
  const auto catalog = repository_.snapshot();
  const Catalog::Entry* const entry = catalog->look_up(package.name);
  return entry && std::any_of(entry->versions.begin(), entry->versions.end(), [&](const Catalog::Version& v) {
           return v.version() == package.file.version && v.loaded();
         });
}

weights::StartingWeights ModelLoader::start_weights(const PackageEntry& package, LoadedModel& loaded) {
  const ModelConfig config = repository_.config_of(package);
  weights::StartingWeights start = weights::start_weights(
      {package.name, package.file.version, *loaded.model, config, loaded.stored.get(), ending_, finder_.signatures()});
  loaded.refused = start.refused;
  return start;
}

ModelLoader::Found ModelLoader::find(const std::string& name) {
  Found found;
  FoundFiles listed = finder_.candidates(name);
  add_served(name, listed);
  std::string stem;
  for (const PackageFile& file : listed.files) {
    if (!found.versions.empty() && file.stem != stem) break;
    stem = file.stem;
    try {
      for (PackageEntry& entry : finder_.open(file)) {
        if (entry.name == name) found.versions.push_back(std::move(entry));
      }
    } catch (...) {
      if (!found.problem) found.problem = std::current_exception();
      const std::string reason = text_of(std::current_exception());
      log_error("model {} version {} cannot be opened: {}", name, file.version, printable(reason));
      // Other names only begin with the file's stem. Such a model may not exist, so nothing is recorded.
      if ((file.stem == name && !file.on_demand) || repository_.snapshot()->look_up(name))
        repository_.publish_failure({.name = name, .file = file}, reason);
    }
  }
  PackageFinder::sort(found.versions);
  if (found.versions.empty() && !found.problem && !listed.unread.empty())
    found.problem = std::make_exception_ptr(Error(ErrorCode::kUnavailable, listed.unread.front().reason));
  return found;
}

void ModelLoader::load_found(const Found& found, const std::string& name, bool again) {
  std::vector<const PackageEntry*> wanted;
  {
    const auto catalog = repository_.snapshot();
    for (const PackageEntry& package : found.versions) {
      if (!is_served(*catalog, package)) wanted.push_back(&package);
    }
  }
  if (wanted.empty() && again && !found.problem) {
    for (const PackageEntry& package : found.versions) wanted.push_back(&package);
  }
  std::exception_ptr problem = found.problem;
  for (const PackageEntry* package : wanted) {
    try {
      load(*package);
    } catch (...) {
      if (!problem) problem = std::current_exception();
    }
  }
  if (problem) std::rethrow_exception(problem);
  repository_.keep_only(name, found.versions);
}

void ModelLoader::load_model(const std::string& name) {
  if (const std::exception_ptr problem = exception_of([&] { finder_.ask(name); })) {
    const auto catalog = repository_.snapshot();
    if (const Catalog::Entry* const entry = catalog->look_up(name))
      repository_.publish_failure({.name = name, .file = entry->versions.back().file}, text_of(problem));
    std::rethrow_exception(problem);
  }
  std::optional<LoadQueue::LoadLock> load_lock;
  if (on_demand_) load_lock.emplace(on_demand_->lock(name));
  const Found found = find(name);
  SCONCE_CHECK(found.problem || !found.versions.empty(), kNotFound, "no package of a model '", excerpt(name),
               "' in what is served");
  if (!on_demand_) return load_found(found, name, true);
  std::vector<ModelUse> steps;
  for (const PackageEntry& package : found.versions)
    if (package.pipeline)
      for (ModelUse& use : on_demand_->bring_steps(*load_lock, *package.pipeline)) steps.push_back(std::move(use));
  on_demand_->prepare(*load_lock, name, found.versions);
  const std::exception_ptr problem = exception_of([&] { load_found(found, name, true); });
  on_demand_->finish(name);
  if (problem) std::rethrow_exception(problem);
}

void ModelLoader::unload_model(const std::string& name) {
  std::optional<LoadQueue::LoadLock> load_lock;
  if (on_demand_) load_lock.emplace(on_demand_->lock(name));
  const bool known = on_demand_ && on_demand_->keep_unloaded(name);
  // A known model need not be loaded.
  if (!known || repository_.snapshot()->look_up(name)) repository_.unload(name);
  log_info("model {} is unloaded", name);
}

// Handles a package of the stem that was added, changed or removed. Returns false if something could not be loaded.
bool ModelLoader::update_stem(const std::string& stem, const std::vector<PackageFile>& files) {
  if (on_demand_ && std::any_of(files.begin(), files.end(),
                                [&](const PackageFile& file) { return file.stem == stem && file.on_demand; }))
    return update_known(stem, files);
  if (on_demand_ && on_demand_->has_stem(stem)) return update_known(stem, files);
  const std::set<std::string> known = names_of(stem);
  std::map<std::string, std::vector<PackageFile>> names;  // names with their files
  bool complete = true;
  for (const PackageFile& file : files) {
    if (file.stem != stem) continue;
    try {
      for (const PackageEntry& entry : finder_.open(file)) names[entry.name].push_back(file);
    } catch (...) {
      complete = false;
    }
  }
  if (!complete) {
    for (const std::string& name : known) names[name];
    if (names.empty()) names[stem];
  }
  bool taken = true;
  for (const auto& [name, seen] : names) {
    try {
      const Found found = find(name);
      SCONCE_CHECK(found.problem || sees(found.versions, stem, seen), kUnavailable,
                   "its packages change while they are read");
      load_found(found, name, false);
    } catch (...) {
      taken = false;
      log_warn("model {} stays as it was: {}", name, printable(text_of(std::current_exception())));
    }
  }
  for (const std::string& name : known) {
    if (names.contains(name)) continue;
    repository_.forget(name);
    log_info("model {} is unloaded: its package is gone", name);
  }
  return taken;
}

// Likewise for models that are loaded on demand: the loaded ones are reloaded.
bool ModelLoader::update_known(const std::string& stem, const std::vector<PackageFile>& files) {
  std::vector<PackageFile> own;
  for (const PackageFile& file : files)
    if (file.stem == stem) own.push_back(file);
  on_demand_->set_files(stem, own);
  bool taken = true;
  for (const std::string& name : names_of(stem)) {
    const LoadQueue::LoadLock load_lock = on_demand_->lock(name);
    const std::shared_ptr<const Catalog> catalog = repository_.snapshot();
    const Catalog::Entry* const entry = catalog->look_up(name);
    if (!entry) continue;  // it was unloaded meanwhile
    const bool loaded =
        std::any_of(entry->versions.begin(), entry->versions.end(), [](const auto& v) { return v.loaded(); });
    if (own.empty() || !loaded) {
      repository_.forget(name);
      log_info("model {} is unloaded: its package {}", name, own.empty() ? "is gone" : "was replaced");
      continue;
    }
    try {
      const Found found = find(name);
      if (found.versions.empty() && !found.problem) {
        repository_.forget(name);
        log_info("model {} is unloaded: its package has other models now", name);
        continue;
      }
      SCONCE_CHECK(found.problem || sees(found.versions, stem, own), kUnavailable,
                   "its packages change while they are read");
      load_found(found, name, false);
    } catch (...) {
      taken = false;
      log_warn("model {} stays as it was: {}", name, printable(text_of(std::current_exception())));
    }
    on_demand_->finish(name);
  }
  return taken;
}

}  // namespace sconce::server::registry
