// ModelLoader: polls for changes in local and remote repositories; frees memory after runs; starts checks in child
// processes.
#include <algorithm>
#include <map>

#include "server/registry/model_loader.h"
#include "server/support/failure.h"
#include "server/support/log.h"

namespace sconce::server::registry {
namespace {

// Longest interval between polls: a change that the kernel does not report, such as a folder that is mounted over
// another one, must be noticed eventually.
constexpr std::chrono::seconds kLongestWatch{60};
// Interval without `watch`, while a repository cannot be read.
constexpr std::chrono::seconds kUnreadLook{2};

bool has(const std::vector<UnreadFolder>& unread, const std::filesystem::path& folder) {
  return std::any_of(unread.begin(), unread.end(), [&](const UnreadFolder& one) { return one.folder == folder; });
}

}  // namespace

void ModelLoader::sources_changed() noexcept {
  if (config_.watch.count() == 0) {
    succeeds([this] { submit([this] { load_new(finder_.repository_files()); }, [](const std::exception_ptr&) {}); });
    return;
  }
  {
    const MutexLock lock(mutex_);
    changed_ = true;
  }
  wake_.notify_one();
}

bool ModelLoader::serves_any() const {
  const auto catalog = repository_.snapshot();
  return std::any_of(catalog->entries().begin(), catalog->entries().end(), [](const Catalog::Entry& entry) {
    return std::any_of(entry.versions.begin(), entry.versions.end(),
                       [](const Catalog::Version& v) { return v.loaded(); });
  });
}

std::unique_ptr<LoadTrial> ModelLoader::begin_ahead(const PackageEntry& package) {
  std::unique_ptr<LoadTrial> trial;
  // The load reports any problem again.
  succeeds([&] {
    if (package.pipeline || !package.opened()) return;
    trial = std::make_unique<LoadTrial>(trial_slots_, trial_program_, package, repository_.config_of(package));
    if (!trial->begin_at_once(serves_any(), waiting_)) trial.reset();
  });
  return trial;
}

// The effect of a contradiction ends with the model.
void ModelLoader::check_rows(const PackageEntry& package, const ModelConfig& config,
                             const std::shared_ptr<ServedModel>& served) {
  const std::weak_ptr<ServedModel> weak = served;
  checks_.add(package, served->interface(), config,
              {.served = [weak] { return !weak.expired(); },
               .contradict =
                   [weak, config](const scheduling::InvarianceFinding& found) {
                     if (const auto model = weak.lock()) model->end_sharing(found, config);
                   }});
}

void ModelLoader::wake() noexcept {
  { const MutexLock lock(mutex_); }  // it waits, or has not checked yet
  wake_.notify_one();
}

// After a change there are two polls, in case the first one could not see all of it.
ModelLoader::Clock::duration ModelLoader::until_next_look(bool changed) const noexcept {
  if (config_.watch.count() == 0) return kUnreadLook;
  const bool quiet = !changed && followed_ && watch_problem_.empty() && unread_.empty() && watch_.at_rest();
  return quiet ? std::max<Clock::duration>(config_.watch, kLongestWatch) : config_.watch;
}

// Asks the kernel to report changes from now on.
void ModelLoader::follow_folders() {
  const auto changed = [this] {
    {
      const MutexLock lock(mutex_);
      changed_ = true;
    }
    wake_.notify_one();
  };
  std::string problem;
  const std::string failure = problem_of([&] {
    if (!events_) events_ = std::make_unique<FolderEvents>(changed);
    problem = events_->follow(folders_);
  });
  if (!failure.empty()) problem = failure;
  followed_ = problem.empty();
  if (!followed_ && problem != events_problem_)
    log_info("repositories are polled every {} ms, because the kernel does not report changes: {}",
             config_.watch.count() / 1000, printable(problem));
  events_problem_ = problem;
}

void ModelLoader::look() {
  if (config_.watch.count() > 0) follow_folders();
  std::string of_a_model;
  std::string problem = problem_of([&] {
    FoundFiles found = finder_.repository_files();
    note_unread(found);
    if (config_.watch.count() > 0) {
      watch_.complete(found);
      of_a_model = take_changes(found);
    } else {
      load_new(found);
    }
    note_read(found);
  });
  if (problem.empty()) problem = of_a_model;
  if (!problem.empty() && problem != watch_problem_) log_error("watching repositories: {}", printable(problem));
  watch_problem_ = problem;
}

// Returns the last error that no model's state shows. If there is no memory for its text, all stems have been tried and
// the failed ones marked before this throws.
std::string ModelLoader::take_changes(const FoundFiles& found) {
  std::exception_ptr problem;
  for (const std::string& stem : watch_.look(found.files)) {
    bool taken = false;
    const std::exception_ptr failure = exception_of([&] { taken = update_stem(stem, found.files); });
    if (!taken) watch_.failed(stem);
    if (failure) problem = failure;
  }
  return problem ? describe_failure(problem).message : std::string();
}

void ModelLoader::start_without(std::span<const UnreadFolder> unread) {
  for (const UnreadFolder& one : unread) {
    const Catalog::Away away{one.reason, false};
    log_error("repository {} is not served: {}", printable(one.folder.native()), printable(one.reason));
    repository_.set_away(one.folder.native(), away);
    unread_[one.folder] = away;
  }
}

void ModelLoader::note_unread(const FoundFiles& found) {
  for (const UnreadFolder& one : found.unread) {
    // A repository that was read at start has known models.
    Catalog::Away& away = unread_.try_emplace(one.folder, Catalog::Away{{}, true}).first->second;
    if (away.reason == one.reason) continue;
    away.reason = one.reason;
    log_error("repository {} {}: {}", printable(one.folder.native()),
              away.known ? "cannot be looked at, and its models stay as they were" : "is not served",
              printable(one.reason));
    repository_.set_away(one.folder.native(), away);
  }
}

// Reports repositories that can be read again, after their models were loaded. Before that the server is not ready.
void ModelLoader::note_read(const FoundFiles& found) {
  std::erase_if(unread_, [&](const auto& each) {
    const std::filesystem::path& folder = each.first;
    if (has(found.unread, folder) || watch_.is_pending_below(folder)) return false;
    log_info("repository {} can be read again", printable(folder.native()));
    repository_.set_away(folder.native(), {});
    return true;
  });
}

void ModelLoader::add_served(const std::string& name, FoundFiles& listed) const {
  if (listed.unread.empty()) return;
  const auto catalog = repository_.snapshot();
  const Catalog::Entry* const entry = catalog->look_up(name);
  if (!entry) return;
  for (const Catalog::Version& version : entry->versions)
    if (version.state != Catalog::State::kUnloaded && listed.misses(version.file)) listed.files.push_back(version.file);
  PackageFinder::sort_candidates(listed.files);
}

// Loads models that are remote, or in a repository that could not be read, and that were not available before.
void ModelLoader::load_new(const FoundFiles& found) {
  FoundFiles read_now;  // the folders that can be read now
  for (const auto& [folder, away] : unread_)
    if (!has(found.unread, folder)) read_now.unread.push_back({folder, {}});
  std::map<std::string, std::vector<PackageFile>> stems;
  for (const PackageFile& file : found.files)
    if (finder_.is_elsewhere(file) || read_now.misses(file)) stems[file.stem].push_back(file);
  for (const auto& each : stems) {
    const std::string& stem = each.first;
    const std::vector<PackageFile>& files = each.second;
    if (files.front().on_demand) {
      if (on_demand_ && !on_demand_->has_stem(stem)) on_demand_->set_files(stem, files);
      continue;
    }
    const auto catalog = repository_.snapshot();
    const bool done = std::ranges::any_of(names_of(stem), [&](const std::string& name) {
      return std::ranges::any_of(catalog->look_up(name)->versions, [](const Catalog::Version& v) {
        return v.loaded() || v.state == Catalog::State::kUnloaded;
      });
    });
    if (!done) succeeds([&] { update_stem(stem, files); });
  }
}

// The names in the catalog that the stem's packages have, or had.
std::set<std::string> ModelLoader::names_of(const std::string& stem) const {
  std::set<std::string> names;
  const auto catalog = repository_.snapshot();
  for (const Catalog::Entry& entry : catalog->entries())
    if (entry.versions.front().file.stem == stem) names.insert(entry.name);
  return names;
}

}  // namespace sconce::server::registry
