#include "server/registry/remote/remote_sources.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "sconce/mutex.h"
#include "server/registry/remote/remote_cache.h"
#include "server/registry/remote/remote_repository.h"
#include "server/registry/remote/serve_argument.h"
#include "server/support/failure.h"
#include "server/support/log.h"

namespace sconce::server::registry {
namespace {

namespace fs = std::filesystem;

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

class PolledSources final : public RemoteSources {
 public:
  explicit PolledSources(const ServerConfig& config);
  ~PolledSources() override { PolledSources::stop(); }
  PolledSources(const PolledSources&) = delete;
  PolledSources& operator=(const PolledSources&) = delete;

  ServerConfig with_folders(ServerConfig config) const override;
  PackageFinder::RemoteFolders folders() const override;
  void start(std::function<void()> looked, Unknown unknown) override;
  void look_now() override;
  void cancel() noexcept override;
  void stop() noexcept override;
  const RemoteCounters& counters() const noexcept override { return counters_; }

 private:
  void add(const std::string& argument, size_t place);
  void look_at_all();
  void look_is_over();
  void tell_unknown();
  bool all_known() const;
  uint64_t changes() const;
  void watch();

  const ServerConfig config_;
  const std::chrono::microseconds period_;
  std::atomic<bool> stop_{false};
  const TransferSettings transfer_;
  const RemoteAccess access_;
  RemoteCounters counters_;
  RemoteCache cache_;
  const RemoteShared shared_;
  std::vector<std::unique_ptr<RemoteRepository>> repositories_;
  std::vector<size_t> places_;  // index of each in the setting `serve`
  std::function<void()> looked_;
  Unknown unknown_;
  uint64_t changes_ = 0;           // number of reported changes
  std::vector<std::string> told_;  // the last reported reason of each
  Mutex mutex_;
  ConditionVariable wake_;
  bool wanted_ SCONCE_GUARDED_BY(mutex_) = false;  // a poll was requested
  std::thread thread_;
};

PolledSources::PolledSources(const ServerConfig& config)
    : config_(config),
      period_(config.watch.count() > 0 ? std::max(config.remote_watch, config.watch) : config.remote_watch),
      transfer_(transfer_of(config_, stop_)),
      access_(read_remote_access(Environment::of_process(), transfer_)),
      cache_(config.remote_cache, static_cast<uint64_t>(config.remote_cache_size)),
      shared_{config_, access_, transfer_, cache_, counters_, stop_} {
  for (size_t i = 0; i < config_.serve.size(); ++i)
    if (ServeArgument(config_.serve[i]).is_remote()) add(config_.serve[i], i);
  for (const auto& repository : repositories_) repository->begin();
  look_is_over();
  for (const auto& repository : repositories_) {
    const std::string reason = repository->why_unknown();
    SCONCE_CHECK(reason.empty() || !config_.exit_on_error, kUnavailable, reason);
  }
}

void PolledSources::stop() noexcept {
  cancel();
  if (thread_.joinable()) thread_.join();
}

void PolledSources::cancel() noexcept {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
}

void PolledSources::add(const std::string& argument, size_t place) {
  ServeArgument named(argument);
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

void PolledSources::look_is_over() {
  const bool all = std::all_of(repositories_.begin(), repositories_.end(),
                               [](const auto& repository) { return repository->problem().empty(); });
  if (all) counters_.looked = seconds_since_1970();
  counters_.cache_bytes = static_cast<int64_t>(cache_.bytes());
}

void PolledSources::look_at_all() {
  for (const auto& repository : repositories_) repository->look();
  if (stop_) return;
  look_is_over();
  tell_unknown();
  if (std::exchange(changes_, changes()) != changes_) looked_();
}

uint64_t PolledSources::changes() const {
  uint64_t sum = 0;
  for (const auto& repository : repositories_) sum += repository->changes();
  return sum;
}

bool PolledSources::all_known() const {
  return std::all_of(repositories_.begin(), repositories_.end(),
                     [](const auto& repository) { return repository->is_complete() && repository->problem().empty(); });
}

void PolledSources::tell_unknown() {
  told_.resize(repositories_.size());
  for (size_t i = 0; i < repositories_.size(); ++i) {
    std::string reason = repositories_[i]->why_unknown();
    if (reason == told_[i]) continue;
    unknown_(repositories_[i]->url().shown(), reason);
    told_[i] = std::move(reason);
  }
}

ServerConfig PolledSources::with_folders(ServerConfig config) const {
  for (size_t i = 0; i < repositories_.size(); ++i) {
    const std::string folder = repositories_[i]->folder().native();
    for (std::string& named : config.load_on_demand)
      if (named == config.serve[places_[i]]) named = folder;
    config.serve[places_[i]] = folder;
  }
  return config;
}

PackageFinder::RemoteFolders PolledSources::folders() const {
  PackageFinder::RemoteFolders folders;
  for (const auto& repository : repositories_) folders[repository->folder()] = repository.get();
  return folders;
}

void PolledSources::start(std::function<void()> looked, Unknown unknown) {
  looked_ = std::move(looked);
  unknown_ = std::move(unknown);
  tell_unknown();
  changes_ = changes();
  thread_ = std::thread([this] { watch(); });
}

void PolledSources::look_now() {
  {
    const MutexLock lock(mutex_);
    wanted_ = true;
  }
  wake_.notify_all();
}

void PolledSources::watch() {
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

}  // namespace

std::unique_ptr<RemoteSources> RemoteSources::of(const ServerConfig& config) {
  const bool any = std::any_of(config.serve.begin(), config.serve.end(),
                               [](const std::string& argument) { return ServeArgument(argument).is_remote(); });
  return any ? std::make_unique<PolledSources>(config) : nullptr;
}

}  // namespace sconce::server::registry
