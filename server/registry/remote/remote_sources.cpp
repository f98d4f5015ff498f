#include "server/registry/remote/remote_sources.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/log.h"

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
    : config_(config),
      period_(config.watch.count() > 0 ? std::max(config.remote_watch, config.watch) : config.remote_watch),
      transfer_(transfer_of(config_, stop_)),
      access_(read_remote_access(Environment::of_process(), transfer_)),
      cache_(config.remote_cache, static_cast<uint64_t>(config.remote_cache_size)),
      shared_{config_, access_, transfer_, cache_, counters_, stop_} {
  for (size_t i = 0; i < config_.serve.size(); ++i)
    if (looks_remote(split_name(config_.serve[i]).url)) add(config_.serve[i], i);
  for (const auto& repository : repositories_) repository->begin();
  look_is_over();
  for (const auto& repository : repositories_) {
    const std::string reason = repository->why_unknown();
    SCONCE_CHECK(reason.empty() || !config_.exit_on_error, kUnavailable, reason);
  }
}

void RemoteSources::stop() noexcept {
  cancel();
  if (thread_.joinable()) thread_.join();
}

void RemoteSources::cancel() noexcept {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
}

void RemoteSources::add(const std::string& argument, size_t place) {
  Named named = split_name(argument);
  const RemoteUrl url = parse_remote_url(named.url);
  if (url.is_package() || !named.name.empty()) {
    SCONCE_CHECK(!url.path.empty(), kInvalidArgument, url.shown(), " names no package");
    if (named.name.empty()) named.name = fs::path(url.file()).stem().native();
    SCONCE_CHECK(is_model_name(named.name), kInvalidArgument, "not a model's name (letters, digits, '_', '-', '.'): '",
                 named.name, "', give another with NAME=", url.shown());
  }
  const auto& named_ones = config_.load_on_demand;
  const bool on_demand = config_.load == LoadWhen::kDemand ||
                         std::find(named_ones.begin(), named_ones.end(), argument) != named_ones.end();
  repositories_.push_back(std::make_unique<RemoteRepository>(shared_, url, named.name, on_demand));
  places_.push_back(place);
}

void RemoteSources::look_is_over() {
  const bool all = std::all_of(repositories_.begin(), repositories_.end(),
                               [](const auto& repository) { return repository->problem().empty(); });
  if (all) counters_.looked = seconds_since_1970();
  counters_.cache_bytes = static_cast<int64_t>(cache_.bytes());
}

void RemoteSources::look_at_all() {
  for (const auto& repository : repositories_) repository->look();
  if (stop_) return;
  look_is_over();
  tell_unknown();
  if (std::exchange(changes_, changes()) != changes_) looked_();
}

uint64_t RemoteSources::changes() const {
  uint64_t sum = 0;
  for (const auto& repository : repositories_) sum += repository->changes();
  return sum;
}

bool RemoteSources::all_known() const {
  return std::all_of(repositories_.begin(), repositories_.end(),
                     [](const auto& repository) { return repository->is_complete() && repository->problem().empty(); });
}

void RemoteSources::tell_unknown() {
  told_.resize(repositories_.size());
  for (size_t i = 0; i < repositories_.size(); ++i) {
    std::string reason = repositories_[i]->why_unknown();
    if (reason == told_[i]) continue;
    unknown_(repositories_[i]->url().shown(), reason);
    told_[i] = std::move(reason);
  }
}

ServerConfig RemoteSources::with_folders(ServerConfig config) const {
  for (size_t i = 0; i < repositories_.size(); ++i) {
    const std::string folder = repositories_[i]->folder().native();
    for (std::string& named : config.load_on_demand)
      if (named == config.serve[places_[i]]) named = folder;
    config.serve[places_[i]] = folder;
  }
  return config;
}

PackageFinder::RemoteFolders RemoteSources::folders() const {
  PackageFinder::RemoteFolders folders;
  for (const auto& repository : repositories_) folders[repository->folder()] = repository.get();
  return folders;
}

void RemoteSources::start(std::function<void()> looked, Unknown unknown) {
  looked_ = std::move(looked);
  unknown_ = std::move(unknown);
  tell_unknown();
  changes_ = changes();
  thread_ = std::thread([this] { watch(); });
}

void RemoteSources::look_now() {
  {
    const MutexLock lock(mutex_);
    wanted_ = true;
  }
  wake_.notify_all();
}

void RemoteSources::watch() {
  // The first listing of a large repository continues at once.
  bool at_once = std::any_of(repositories_.begin(), repositories_.end(), [](const auto& repository) {
    return !repository->is_complete() && repository->problem().empty();
  });
  for (;;) {
    {
      const MutexLock lock(mutex_);
      const auto next = std::chrono::steady_clock::now() + period_;
      const bool looks_again = config_.watch.count() > 0 || !all_known();
      while (!at_once && !stop_ && !wanted_ && (!looks_again || std::chrono::steady_clock::now() < next))
        looks_again ? static_cast<void>(wake_.wait_until(mutex_, next)) : wake_.wait(mutex_);
      wanted_ = at_once = false;
    }
    if (stop_) return;
    succeeds([this] { look_at_all(); });
  }
}

}  // namespace sconce::server
