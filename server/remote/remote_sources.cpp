#include "server/remote/remote_sources.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <set>
#include <system_error>
#include <utility>

#include "sconce/check.h"
#include "server/base/failure.h"
#include "server/base/log.h"
#include "server/remote/folder_walk.h"

namespace sconce::server {
namespace {

namespace fs = std::filesystem;

struct Named {
  std::string name, url;
};

// NAME=URL, or URL.
Named split_name(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals != std::string::npos && is_model_name(argument.substr(0, equals)))
    return {argument.substr(0, equals), argument.substr(equals + 1)};
  return {"", argument};
}

RemoteAccess access_of_environment() {
  return read_remote_access([](const char* name) { return std::getenv(name); });
}

bool holds_files(const fs::path& folder) {
  const std::vector<Below> below = all_below(folder);
  return std::any_of(below.begin(), below.end(), [](const Below& found) { return S_ISREG(found.status.st_mode); });
}

// Whatever else a failure says, a file that is not there may be left out. S3 answers 403 to whoever may not list.
bool means_absent(const std::exception_ptr& problem) {
  const ErrorCode code = describe_failure(problem).code;
  return code == ErrorCode::kNotFound || code == ErrorCode::kForbidden;
}

// Removes files that are not among those wanted, and folders that became empty.
void keep_only(const fs::path& folder, const std::set<fs::path>& wanted) {
  for (const Below& below : all_below(folder)) {
    if (S_ISDIR(below.status.st_mode)) {
      ::rmdir(below.path.c_str());  // only if nothing is in it
    } else if (!wanted.contains(below.path)) {
      ::unlink(below.path.c_str());
    }
  }
}

TransferSettings transfer_of(const ServerConfig& config, const std::atomic<bool>& stop) {
  TransferSettings settings;
  settings.ca = config.remote_ca;
  settings.stall = std::chrono::duration_cast<std::chrono::milliseconds>(config.remote_stall);
  settings.stop = &stop;
  return settings;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::unique_ptr<RemoteSources> RemoteSources::of(const ServerConfig& config) {
  const bool any = std::any_of(config.serve.begin(), config.serve.end(),
                               [](const std::string& argument) { return looks_remote(split_name(argument).url); });
  return any ? std::unique_ptr<RemoteSources>(new RemoteSources(config)) : nullptr;
}

RemoteSources::RemoteSources(const ServerConfig& config)
    : period_(config.watch.count() > 0 ? std::max(config.remote_watch, config.watch) : std::chrono::microseconds(0)),
      connections_(static_cast<int>(std::clamp<int64_t>(config.remote_connections, 1, 64))),
      transfer_(transfer_of(config, stop_)),
      cache_(config.remote_cache, static_cast<uint64_t>(config.remote_cache_size)) {
  for (size_t i = 0; i < config.serve.size(); ++i)
    if (looks_remote(split_name(config.serve[i]).url)) add(config.serve[i], i);
  look_at_all();
  for (const Source& source : sources_)
    SCONCE_CHECK(source.problem.empty() || !config.exit_on_error || holds_files(source.folder), kUnavailable,
                 source.problem);
}

RemoteSources::~RemoteSources() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void RemoteSources::add(const std::string& argument, size_t place) {
  Named named = split_name(argument);
  Source source;
  source.place = place;
  source.url = parse_remote_url(named.url);
  const bool package = source.url.is_package() || !named.name.empty();
  if (package) {
    SCONCE_CHECK(!source.url.path.empty(), kInvalidArgument, source.url.shown(), " names no package");
    source.name = named.name.empty() ? fs::path(source.url.file()).stem().native() : named.name;
    SCONCE_CHECK(is_model_name(source.name), kInvalidArgument, "not a model's name (letters, digits, '_', '-', '.'): '",
                 source.name, "', give another with NAME=", source.url.shown());
  }
  source.folder = cache_.mirror(source.url, source.name);
  sources_.push_back(std::move(source));
}

DownloadOptions RemoteSources::options() {
  DownloadOptions options;
  options.transfer = transfer_;
  options.connections = connections_;
  options.fetched = [this](uint64_t bytes) { counters_.fetched += bytes; };
  return options;
}

void RemoteSources::bring(const Source& source, const RemoteUrl& url, const RemoteAccess& access,
                          const std::string& listed, const std::string& name) {
  const fs::path place = source.folder / name;
  std::error_code ignored;
  fs::create_directories(place.parent_path(), ignored);
  const auto begin = std::chrono::steady_clock::now();
  const RemoteCache::Obtained obtained = cache_.obtain(url, access, listed, place, options());
  if (obtained.fetched) {
    ++counters_.downloads;
    log_info("{} is here: {} bytes in {:.1f} s, sha256 {}", printable(url.shown()), obtained.bytes,
             std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), hex_of(obtained.digest));
  }
}

void RemoteSources::look_at_package(const Source& source, const RemoteAccess& access) {
  const std::string name = source.name + ".pt2", signature = name + ".sig";
  std::set<fs::path> wanted = {source.folder / name};
  const std::exception_ptr problem =
      exception_of([&] { bring(source, source.url.beside(".sig"), access, "", signature); });
  if (problem && !means_absent(problem)) std::rethrow_exception(problem);
  if (!problem) wanted.insert(source.folder / signature);
  bring(source, source.url, access, "", name);
  keep_only(source.folder, wanted);
}

void RemoteSources::look_at_repository(const Source& source, const RemoteAccess& access) {
  Transfer transfer(transfer_);
  const std::vector<RemoteFile> files = files_of_models(list_remote(source.url, access, transfer));
  std::set<fs::path> wanted;
  std::exception_ptr first;
  for (const RemoteFile& file : files) {
    wanted.insert(source.folder / file.path);
    const std::string path = source.url.path.empty() ? file.path : source.url.path + "/" + file.path;
    std::exception_ptr problem =
        exception_of([&] { bring(source, source.url.with_path(path), access, file.validator, file.path); });
    if (problem && !first) first = std::move(problem);
    if (stop_) return;
  }
  keep_only(source.folder, wanted);
  if (first) std::rethrow_exception(first);
}

bool RemoteSources::look(Source& source) {
  const std::string problem = problem_of([&] {
    const RemoteAccess access = access_of_environment();
    if (source.name.empty()) {
      look_at_repository(source, access);
    } else {
      look_at_package(source, access);
    }
  });
  if (stop_) return false;
  if (!problem.empty() && problem != source.problem) {
    log_warn("{} cannot be brought here{}: {}", printable(source.url.shown()),
             holds_files(source.folder) ? "; what the cache has from earlier is served" : "", printable(problem));
  } else if (problem.empty() && !source.problem.empty()) {
    log_info("{} can be reached again", printable(source.url.shown()));
  }
  if (!problem.empty()) ++counters_.failures;
  source.problem = problem;
  return problem.empty();
}

void RemoteSources::look_at_all() {
  bool all = true;
  for (Source& source : sources_) all = look(source) && all;
  if (all) counters_.looked = seconds_since_1970();
  counters_.cache_bytes = static_cast<int64_t>(cache_.bytes());
}

ServerConfig RemoteSources::with_folders(ServerConfig config) const {
  for (const Source& source : sources_) config.serve[source.place] = source.folder.native();
  return config;
}

void RemoteSources::start() {
  if (period_.count() > 0) thread_ = std::thread([this] { watch(); });
}

void RemoteSources::watch() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      const auto next = std::chrono::steady_clock::now() + period_;
      while (!stop_ && std::chrono::steady_clock::now() < next) wake_.wait_until(mutex_, next);
    }
    if (stop_) return;
    succeeds([this] { look_at_all(); });
  }
}

}  // namespace sconce::server
