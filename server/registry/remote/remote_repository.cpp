#include "server/registry/remote/remote_repository.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <system_error>

#include "sconce/check.h"
#include "server/registry/remote/folder_walk.h"
#include "server/registry/repositories/package_finder.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "src/support/hex.h"

namespace sconce::server::registry {
namespace {

namespace fs = std::filesystem;

// Whether a failure may mean that the file does not exist. S3 answers 403 to clients without the right to list.
bool means_absent(const std::exception_ptr& problem) {
  const ErrorCode code = describe_failure(problem).code;
  return code == ErrorCode::kNotFound || code == ErrorCode::kForbidden;
}

// The possible stems of a model's package: its name, and each prefix before a dot.
std::vector<std::string> stems_of_model(std::string_view model) {
  std::vector<std::string> stems;
  for (size_t end = model.size(); end != std::string_view::npos && end > 0; end = model.rfind('.', end - 1))
    if (is_model_name(model.substr(0, end))) stems.emplace_back(model.substr(0, end));
  return stems;
}

bool is_package_file(const std::string& path) { return path.ends_with(".pt2"); }

// The package of a package file or of its signature; empty: another file.
std::string package_of_file(const std::string& path) {
  constexpr std::string_view kSignature = ".sig";
  const std::string package = path.ends_with(kSignature) ? path.substr(0, path.size() - kSignature.size()) : path;
  return is_package_file(package) ? package : std::string();
}

}  // namespace

RemoteRepository::RemoteRepository(const RemoteShared& shared, RemoteUrl url, std::string model, bool on_demand)
    : shared_(shared),
      url_(std::move(url)),
      model_(std::move(model)),
      on_demand_(on_demand),
      folder_(shared.cache.mirror(url_, model_)) {}

RemoteUrl RemoteRepository::url_of(const std::string& path) const {
  if (!model_.empty()) return path.ends_with(".sig") ? url_.beside(".sig") : url_;
  return url_.with_path(url_.path.empty() ? path : url_.path + "/" + path);
}

std::string RemoteRepository::below(const fs::path& file) const {
  return file.native().substr(std::min(file.native().size(), folder_.native().size() + 1));
}

std::string RemoteRepository::problem() const {
  const MutexLock lock(mutex_);
  return problem_;
}

std::string RemoteRepository::why_unknown() const {
  const MutexLock lock(mutex_);
  return known_ || !model_.empty() ? std::string() : problem_;
}

std::shared_ptr<const FolderView> RemoteRepository::view() const {
  const MutexLock lock(mutex_);
  if (!view_) {
    std::vector<RemoteFile> files;
    for (const auto& [stem, group] : groups_)
      for (const RemoteFile& file : group.files) {
        files.push_back(file);
        // Its later arrival then counts as a change.
        if (!group.problem.empty()) files.back().validator = "missing";
      }
    view_ = std::make_shared<const ListedFolder>(folder_, std::move(files));
  }
  return view_;
}

bool RemoteRepository::fetch(const std::string& path, const std::string& validator) {
  const RemoteUrl url = url_of(path);
  const fs::path place = folder_ / path;
  std::error_code ignored;
  fs::create_directories(place.parent_path(), ignored);
  DownloadOptions options;
  options.transfer = shared_.transfer;
  options.connections = static_cast<int>(std::clamp<int64_t>(shared_.config.remote_connections, 1, 64));
  options.fetched = [this](uint64_t bytes) { shared_.counters.fetched += bytes; };
  const auto begin = std::chrono::steady_clock::now();
  const RemoteCache::Obtained obtained = shared_.cache.obtain(url, shared_.access, validator, place, options);
  if (obtained.fetched) {
    ++shared_.counters.downloads;
    log_info("{} downloaded: {} bytes in {:.1f} s, sha256 {}", printable(url.shown()), obtained.bytes,
             std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), to_hex(obtained.digest));
  }
  return obtained.fetched;
}

// Executes a poll, and records the result.
void RemoteRepository::attempt(const std::function<void()>& work) {
  const std::string problem = problem_of([&] { work(); });
  if (shared_.stop) return;
  std::string before;
  bool known = false;
  {
    const MutexLock lock(mutex_);
    before = std::exchange(problem_, problem);
    known_ = known_ || problem.empty();
  }
  if (!problem.empty()) {
    ++shared_.counters.failures;
    const MutexLock lock(mutex_);
    known = !groups_.empty();
    known_ = known_ || known;
  }
  if (!problem.empty() && problem != before) {
    log_warn("{} cannot be downloaded{}: {}", printable(url_.shown()),
             known ? "; what the cache has from earlier is served" : "", printable(problem));
  } else if (problem.empty() && !before.empty()) {
    log_info("{} can be reached again", printable(url_.shown()));
  }
}

void RemoteRepository::begin() {
  use_earlier();
  if (!on_demand_) {
    look();
  } else if (!model_.empty()) {
    commit(model_, {{{model_ + ".pt2", 0, shared_.cache.validator_of(url_)}}, {}, {}, ++asks_});
    listed_ = true;
  } else {
    attempt([this] {
      const uint64_t asked = ++asks_;
      Transfer transfer(shared_.transfer);
      RemoteLister lister(url_, shared_.access);
      std::vector<RemoteFile> files;
      lister.next(transfer, files);
      if (!lister.at_end()) return;
      std::set<std::string> stems;
      for (auto& [stem, group] : groups_of(std::move(files))) {
        stems.insert(stem);
        group.asked = asked;
        commit(stem, std::move(group));
      }
      forget_others(stems, asked);
      prune();
      listed_ = true;
    });
  }
}

bool RemoteRepository::look() {
  attempt([this] { model_.empty() ? look_at_list() : look_at_package(); });
  return problem().empty();
}

void RemoteRepository::look_at_list() {
  const uint64_t asked = ++asks_;
  std::vector<RemoteFile> files;
  {
    Transfer transfer(shared_.transfer);
    files = list_remote(url_, shared_.access, transfer);
  }
  {
    const MutexLock lock(mutex_);
    known_ = true;
  }
  std::set<std::string> stems;
  std::exception_ptr problem;
  for (auto& [stem, group] : groups_of(std::move(files))) {
    stems.insert(stem);
    group.asked = asked;
    take(stem, std::move(group), problem);
  }
  forget_others(stems, asked);
  prune();
  listed_ = true;
  if (problem) std::rethrow_exception(problem);
}

void RemoteRepository::look_at_package() {
  const std::string package = model_ + ".pt2";
  const std::shared_ptr<const void> use = this->use(package);
  // It was never requested, or was evicted.
  if (std::error_code ignored; on_demand_ && !fs::exists(folder_ / package, ignored)) return;
  std::exception_ptr problem;
  take(model_, {{{package, 0, ""}}, {}, {}, ++asks_}, problem);
  prune();
  if (problem) std::rethrow_exception(problem);
}

// Uses the files in the mirror from earlier: they stay until the address has others.
void RemoteRepository::use_earlier() {
  std::vector<RemoteFile> files;
  for (const Below& found : all_below(folder_))
    if (S_ISREG(found.status.st_mode)) {
      std::string path = below(found.path);
      std::string validator = http::without_quotes(shared_.cache.validator_of(url_of(path)));
      files.push_back({std::move(path), static_cast<uint64_t>(found.status.st_size), std::move(validator)});
    }
  // Including files that are only in the cache.
  if (on_demand_ && model_.empty())
    for (RemoteFile& file : shared_.cache.known_below(url_))
      if (std::none_of(files.begin(), files.end(), [&](const RemoteFile& one) { return one.path == file.path; })) {
        file.validator = http::without_quotes(file.validator);
        files.push_back(std::move(file));
      }
  const uint64_t asked = ++asks_;
  for (auto& each : groups_of(std::move(files))) {
    const std::string& stem = each.first;
    auto& group = each.second;
    // A killed server may have left only the files beside a package.
    const bool whole = std::any_of(group.files.begin(), group.files.end(), [&](const RemoteFile& file) {
      return file.path.ends_with(".pt2") || file.path.ends_with(".pipeline.json") ||
             (file.path == stem + "/config.pbtxt" &&
              served_versions(shared_.config, stem, folder_ / file.path).ensemble);
    });
    if (!whole) continue;
    group.asked = asked;
    commit(stem, std::move(group));
  }
}

RemoteRepository::Groups RemoteRepository::groups_of(std::vector<RemoteFile> files) const {
  Groups groups;
  for (RemoteFile& file : files_of_models(std::move(files))) {
    file.validator = http::without_quotes(file.validator);
    groups[stem_of_file(file.path)].files.push_back(std::move(file));
  }
  return groups;
}

// Replaces the known files of a model with the listed ones. problem: the first one.
void RemoteRepository::take(std::string stem, Group listed, std::exception_ptr& problem) {
  if (on_demand_ && model_.empty()) return commit(stem, std::move(listed));
  const auto count = [&](bool begins) {
    const MutexLock lock(mutex_);
    if (begins) {
      taken_.insert(stem);
    } else {
      taken_.extract(stem);
    }
  };
  count(true);
  Group fresh;
  const std::exception_ptr failure = exception_of([&] { fresh = fetched(stem, listed); });
  if (!failure) commit(stem, std::move(fresh));
  count(false);
  if (!failure) return;
  SCONCE_CHECK(!shared_.stop, kCancelled, "the server is ending");
  if (!problem) problem = failure;
  const Failure why = describe_failure(failure);
  {
    const MutexLock lock(mutex_);
    // The local files stay.
    if (const auto known = groups_.find(stem); known != groups_.end() && known->second.problem.empty()) return;
  }
  listed.problem = why.message;
  listed.code = why.code;
  commit(stem, std::move(listed));
}

// Downloads the served files of a model. Packages come last, so that the files of a package are there before it.
RemoteRepository::Group RemoteRepository::fetched(const std::string& stem, const Group& listed) {
  Group fresh;
  fresh.asked = listed.asked;
  if (!model_.empty()) {
    const std::string package = model_ + ".pt2", signature = package + ".sig";
    const std::exception_ptr problem = exception_of([&] { fetch(signature, ""); });
    if (problem && !means_absent(problem)) std::rethrow_exception(problem);
    fetch(package, "");
    for (const std::string& path : {signature, package})
      if (!problem || path == package)
        fresh.files.push_back({path, 0, http::without_quotes(shared_.cache.validator_of(url_of(path)))});
    return fresh;
  }
  const std::string config = stem + "/config.pbtxt";
  std::vector<int64_t> versions;
  bool has_config = false;
  for (const RemoteFile& file : listed.files) {
    const int64_t version = version_of_file(file.path);
    if (version > 0 && is_package_file(file.path)) versions.push_back(version);
    if (file.path != config) continue;
    fetch(file.path, file.validator);
    has_config = true;
  }
  std::sort(versions.begin(), versions.end());
  const ServedVersions served = served_versions(shared_.config, stem, has_config ? folder_ / config : fs::path());
  for (const RemoteFile& file : listed.files) {
    const int64_t version = version_of_file(file.path);
    if (version > 0 && (served.ensemble || !served.policy.serves(version, versions))) continue;
    if (file.path != config) fetch(file.path, file.validator);
    fresh.files.push_back(file);
  }
  return fresh;
}

// Unless a later query has changed it.
void RemoteRepository::commit(const std::string& stem, Group group) {
  const MutexLock lock(mutex_);
  Group& known = groups_[stem];
  if (known.asked > group.asked) return;
  const bool differs = known.asked == 0 || known.files != group.files || known.problem != group.problem;
  known = std::move(group);
  if (differs) has_changed();
}

void RemoteRepository::has_changed() {
  ++changes_;
  view_.reset();
}

void RemoteRepository::forget_others(const std::set<std::string>& stems, uint64_t asked) {
  const MutexLock lock(mutex_);
  const size_t gone = std::erase_if(
      groups_, [&](const auto& known) { return !stems.contains(known.first) && known.second.asked < asked; });
  if (gone > 0) has_changed();
}

// Whether a file of the mirror is served, or being downloaded.
bool RemoteRepository::is_wanted(const std::string& path) const {
  const std::string stem = stem_of_file(path);
  if (taken_.contains(stem)) return true;
  if (const std::string package = package_of_file(path); on_demand_ && !package.empty()) return uses_.contains(package);
  const auto known = groups_.find(stem);
  return known != groups_.end() && std::any_of(known->second.files.begin(), known->second.files.end(),
                                               [&](const RemoteFile& file) { return file.path == path; });
}

// Removes files from the mirror that belong to no group or are unused, and empty folders.
void RemoteRepository::prune() {
  for (const Below& found : all_below(folder_)) {
    if (S_ISDIR(found.status.st_mode)) {
      ::rmdir(found.path.c_str());                                  // only if it is empty
    } else if (!found.path.filename().native().starts_with('.')) {  // hidden files are being moved into place
      // No group may be added between the check and the removal.
      const MutexLock lock(mutex_);
      if (!is_wanted(below(found.path))) ::unlink(found.path.c_str());
    }
  }
}

// While the result lives, the package stays in the mirror once it is there.
std::shared_ptr<const void> RemoteRepository::use(const std::string& package) {
  if (!on_demand_) return nullptr;
  struct Use {
    RemoteRepository& repository;
    const std::string package;
    Use(RemoteRepository& of, std::string name) : repository(of), package(std::move(name)) {
      const MutexLock lock(repository.mutex_);
      ++repository.uses_[package];
    }
    Use(const Use&) = delete;
    ~Use() { repository.end_use(package); }
  };
  return std::make_shared<const Use>(*this, package);
}

void RemoteRepository::end_use(const std::string& package) noexcept {
  const MutexLock lock(mutex_);
  const auto used = uses_.find(package);
  if (--used->second > 0) return;
  uses_.erase(used);
  // A server that starts without a connection uses the files that this process served last.
  if (shared_.stop) return;
  succeeds([&] {
    const fs::path file = folder_ / package;
    ::unlink(file.c_str());
    ::unlink((file.native() + ".sig").c_str());
  });
}

void RemoteRepository::ask(std::string_view model) {
  const std::vector<std::string> stems = stems_of_model(model);
  const uint64_t asked = ++asks_;
  std::exception_ptr problem;
  if (!model_.empty()) {
    if (std::find(stems.begin(), stems.end(), model_) == stems.end()) return;
    take(model_, {{{model_ + ".pt2", 0, ""}}, {}, {}, asked}, problem);
  } else {
    std::vector<RemoteFile> files;
    {
      Transfer transfer(shared_.transfer);
      if (url_.scheme == RemoteScheme::kHub) {
        files = list_remote(url_, shared_.access, transfer);
      } else {
        for (const std::string& stem : stems)
          for (const char* const end : {"/", "."}) {
            RemoteLister lister(url_, shared_.access, stem + end);
            while (!lister.at_end()) lister.next(transfer, files);
          }
      }
    }
    std::erase_if(files, [&](const RemoteFile& file) {
      return std::find(stems.begin(), stems.end(), stem_of_file(file.path)) == stems.end();
    });
    // The listing of "a." also has the files of "a.b/", so there may be duplicates.
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    files.erase(std::unique(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path == b.path; }),
                files.end());
    Groups groups = groups_of(std::move(files));
    for (const std::string& stem : stems) {
      const auto found = groups.find(stem);
      if (found == groups.end()) {
        const MutexLock lock(mutex_);
        if (const auto known = groups_.find(stem); known != groups_.end() && known->second.asked < asked) {
          groups_.erase(known);
          has_changed();
        }
        continue;
      }
      found->second.asked = asked;
      take(stem, std::move(found->second), problem);
    }
  }
  prune();
  if (problem) std::rethrow_exception(problem);
}

void RemoteRepository::prepare(const std::string& stem) {
  if (!on_demand_) return;
  if (!model_.empty()) return bring_package();
  Group group;
  {
    const MutexLock lock(mutex_);
    if (const auto known = groups_.find(stem); known != groups_.end()) group = known->second;
  }
  for (const RemoteFile& file : group.files)
    if (version_of_file(file.path) == 0 && !is_package_file(file.path)) fetch(file.path, file.validator);
}

void RemoteRepository::bring_package() {
  const std::string package = model_ + ".pt2";
  std::exception_ptr problem;
  take(model_, {{{package, 0, ""}}, {}, {}, ++asks_}, problem);
  std::error_code ignored;
  if (!problem) return;
  if (!fs::exists(folder_ / package, ignored) && !succeeds([&] { fetch_known(package); }))
    std::rethrow_exception(problem);
  log_warn("{}: what the cache has from earlier is served: {}", printable(url_.shown()),
           printable(describe_failure(problem).message));
}

// Takes a file from the cache, without a request.
void RemoteRepository::fetch_known(const std::string& path) {
  const std::string validator = shared_.cache.validator_of(url_of(path));
  SCONCE_CHECK(!validator.empty(), kNotFound, url_of(path).shown(), " was not fetched");
  fetch(path, validator);
}

std::shared_ptr<const void> RemoteRepository::bring(const fs::path& file) {
  const std::string path = below(file), stem = stem_of_file(path);
  Group group;
  {
    const MutexLock lock(mutex_);
    const auto known = groups_.find(stem);
    SCONCE_CHECK(known != groups_.end(), kNotFound, url_of(path).shown(), " no longer exists");
    group = known->second;
  }
  if (!group.problem.empty()) throw Error(group.code, group.problem);
  if (!on_demand_) return nullptr;
  std::shared_ptr<const void> in_use = is_package_file(path) ? use(path) : nullptr;
  if (!model_.empty()) {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) bring_package();
    return in_use;
  }
  for (const RemoteFile& each : group.files)
    if (each.path == path + ".sig") fetch(each.path, each.validator);
  for (const RemoteFile& each : group.files)
    if (each.path == path) fetch(each.path, each.validator);
  return in_use;
}

}  // namespace sconce::server::registry
