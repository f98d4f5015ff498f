#include "server/server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <future>
#include <thread>

#include "package_format/files/host_memory.h"
#include "sconce/check.h"
#include "sconce/mapped_files.h"
#include "sconce/version.h"
#include "server/api/admission.h"
#include "server/api/api_handler.h"
#include "server/api/handlers.h"
#include "server/grpc/grpc_front.h"
#include "server/http/connections/connection_room.h"
#include "server/http/connections/io_thread.h"
#include "server/http/connections/listener.h"
#include "server/registry/model_loader.h"
#include "server/registry/model_weights.h"
#include "server/registry/remote/remote_sources.h"
#include "server/registry/repository.h"
#include "server/registry/trial/trial_plan.h"
#include "server/rollout/push_api.h"
#include "server/rollout/push_reconciler.h"
#include "server/rollout/rollout.h"
#include "server/rollout/watch/guard_watcher.h"
#include "server/support/failure.h"
#include "server/support/json/float_text.h"
#include "server/support/left_out.h"
#include "server/support/log.h"
#include "server/support/process/end_signals.h"
#include "server/support/timer_queue.h"
#include "server/telemetry/log_ring.h"
#include "server/telemetry/telemetry.h"

namespace sconce::server {
namespace {

namespace asio = boost::asio;

// The program for trial children: this program, even if its file was replaced.
constexpr const char* kProgram = "/proc/self/exe";
// Interval of polling the files of tokens, certificates and keys.
constexpr std::chrono::seconds kLook{1};
// Time that a connection has, in a shutdown, for the answer that it has timed out.
constexpr std::chrono::seconds kLastWords{1};
// When the process ends in any case, after the time that a shutdown may take.
constexpr std::chrono::seconds kCutOff{8};
// How long a load may continue after the last request of a drain.
constexpr std::chrono::seconds kLastLoad{2};

// Each connection needs a descriptor. Raises the soft limit to the hard limit, and limits connections to the available
// descriptors.
void fit_to_descriptors(ServerConfig& config) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) getrlimit(RLIMIT_NOFILE, &limit);
  const auto descriptors = static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT32_MAX));
  const http::ConnectionRoom wanted{config.max_connections, config.max_side_connections};
  const http::ConnectionRoom room = http::connection_room(descriptors, wanted, config.grpc.enabled());
  if (room.of_public < wanted.of_public)
    log_warn(
        "max_connections is {} instead of {}{}: the process may have {} descriptors (ulimit -n, LimitNOFILE), and "
        "others need some too",
        room.of_public, wanted.of_public, config.grpc.enabled() ? ", for HTTP and gRPC each" : "", descriptors);
  config.max_connections = room.of_public;
  config.max_side_connections = room.of_side;
}

size_t io_threads(const ServerConfig& config) {
  if (config.io_threads > 0) return static_cast<size_t>(std::min<int64_t>(config.io_threads, 256));
  cpu_set_t cores;
  const int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return static_cast<size_t>(std::clamp(count, 1, 8));
}

// Whether the file or folder may have weights large enough for a warm-up run in a child. Facts about outputs that the
// package lacks are unknown before the package is opened.
bool may_be_tried_first(const registry::PackageFile& file) {
  std::error_code problem;
  const uintmax_t bytes = std::filesystem::file_size(file.path, problem);
  return problem || bytes >= registry::kSlowWeights;
}

uint64_t request_memory(const ServerConfig& config) {
  constexpr uint64_t kShare = 4;
  return config.request_memory > 0 ? static_cast<uint64_t>(config.request_memory) : host_memory().limit / kShare;
}

// The main thread: waits for signals and runs the phases of a shutdown.
class Server {
 public:
  explicit Server(const ServerConfig& config)
      : remote_(registry::RemoteSources::of(config)),
        config_(remote_ ? remote_->with_folders(config) : config),
        threads_(io_threads(config)),
        signatures_(config_.require_signature),
        finder_(config_, signatures_, remote_ ? remote_->folders() : registry::PackageFinder::RemoteFolders()),
        unread_(find_files(files_)),
        trial_(start_child()),
        packages_(find_packages()),
        budget_(static_cast<uint64_t>(config.memory_budget), static_cast<uint64_t>(config.device_memory_budget)),
        request_memory_(request_memory(config)),
        repository_(config_, clock_, idle_watch_, reaper_, packages_,
                    threads_ + 1 + (config.grpc.enabled() ? rpc::CallSlots::kPlaces : 0), &budget_),
        store_(config.weights_store, config.weights_store_key),
        on_demand_(finder_.loads_on_demand()
                       ? std::make_unique<registry::OnDemand>(config_, finder_, repository_, budget_, files_)
                       : nullptr),
        control_(
            config_, finder_, repository_, store_, idle_watch_, std::move(packages_),
            [this](std::exception_ptr failure) noexcept { fail(std::move(failure)); }, on_demand_.get(), files_),
        admission_(config_, repository_, control_, request_memory_, draining_),
        telemetry_(config_, connections_, threads_ + 1),
        rollout_(config_, repository_, signatures_, draining_, telemetry_),
        reconciler_(clock_, rollout_),
        guard_watcher_(clock_, rollout_),
        end_(context_),
        hangups_(context_, SIGHUP),
        credentials_timer_(context_),
        timer_(context_) {
    control_.try_with(kProgram, std::move(trial_));
    control_.start_without(unread_);
    files_ = {};
    if (on_demand_)
      on_demand_->ask_before_unloading(
          [this](const registry::ServedModel& model) { return rollout_.claims.claimed(model); });
    if (remote_) telemetry_.remote = &remote_->counters();
    SCONCE_CHECK(
        !signatures_.on() || config_.weights_store.empty() || !config_.weights_store_key.empty(), kInvalidArgument,
        "settings require_signature and weights_store together need weights_store_key: without it, whoever can "
        "write to weights_store decides which weights serve after a restart");
    rollout_.pushes.on_end([this](const rollout::PushRecord& push) { keep_end(push); });
    control_.on_loaded(
        [this](const std::shared_ptr<registry::ServedModel>& served, const weights::StartingWeights& start) {
          const std::string problem = problem_of([&] {
            rollout_.pushes.restore(rollout::place_of(served), start.pushes, start.weight_version);
            rollout_.pushes.restore(rollout::place_of(served), rollout::pushes_of_sets(served->model()), 0);
            if (served->weights().stored()) guard_watcher_.loaded(served, start);
          });
          if (!problem.empty())
            log_error("model {} version {}: the stored state of its last push or guard is lost: {}",
                      served->interface().name, served->interface().version, printable(problem));
        });
    // The last I/O thread accepts connections and serves metrics and administration, so that a busy model does not
    // delay these.
    const http::HttpShared shared{config_,
                                  telemetry_.counters,
                                  connections_,
                                  request_memory_,
                                  admission_.credentials,
                                  telemetry_.refusals,
                                  telemetry_.failures};
    for (size_t i = 0; i <= threads_; ++i) {
      io_threads_.push_back(std::make_unique<http::IoThread>(shared, i));
      io_threads_.back()->answer_by(
          std::make_unique<api::ApiHandler>(admission_, rollout_, telemetry_, *io_threads_.back()));
    }
    std::vector<http::IoThread*> io;
    for (size_t i = 0; i < threads_; ++i) io.push_back(io_threads_[i].get());
    http::IoThread& side = *io_threads_.back();
    // scope: must be protected if other hosts can reach the listener.
    const auto listen = [&](const Address& address, http::Listeners kind, std::vector<http::IoThread*> io_threads,
                            const char* what, TlsMode tls, uint8_t scope) {
      if (!address.enabled()) return;
      listeners_.push_back(std::make_unique<http::Listener>(side, std::move(io_threads), address, kind));
      const http::Listener& listener = *listeners_.back();
      SCONCE_CHECK(scope == http::kNoScope || listener.is_loopback() || tls == TlsMode::kMutual ||
                       admission_.credentials.snapshot()->needs_token(scope),
                   kInvalidArgument, "setting ", kind == http::kAdmin ? "admin" : "metrics",
                   ": an address that others can reach needs ",
                   kind == http::kAdmin
                       ? "admin_token_file, a token of scope admin in token_file, or admin_tls = mutual"
                       : "a token of scope metrics in token_file, metrics_tls = mutual, or metrics_open",
                   ": ", listener.address());
      if (listener.is_loopback() && tls != TlsMode::kMutual) admission_.checks_host |= kind;
      if (kind == http::kPublic && !listener.is_loopback()) check_reach(listener.address());
      const std::string url = (tls == TlsMode::kOff ? "http://" : "https://") + listener.address();
      log_info("{} on {}", what, url);
      if (kind == http::kPublic) admission_.public_url = url;
      if (kind == http::kAdmin) admission_.admin_url = url;
    };
    listen(config.http, http::kPublic, io, "inference", config.http_tls, http::kNoScope);
    if (config.grpc.enabled()) {
      grpc_ = std::make_unique<rpc::GrpcFront>(admission_, telemetry_, clock_, threads_ + 1);
      if (!grpc_->is_loopback()) check_reach(grpc_->address());
      admission_.grpc_address = grpc_->address();
      log_info("inference by gRPC on {}", grpc_->address());
    }
    listen(config.metrics, http::kMetrics, {&side}, "metrics", config.metrics_tls,
           config.metrics_open ? http::kNoScope : http::kMetricsScope);
    listen(config.admin, http::kAdmin, {&side}, "administration", config.admin_tls, http::kAdminScope);
  }

  ~Server() {
    if (remote_) remote_->stop();  // it notifies the following parts
    control_.stop();
    idle_watch_.stop();  // models run on until the reaper has deleted them
    grpc_.reset();
    rollout_.operations.stop();
    rollout_.admin_threads.stop();  // they pass their answers to the I/O threads
    admission_.heavy_work.stop();   // likewise
    // I/O threads outlive the models: after a replica thread has handed over an answer, it may still wake the event
    // loop of that connection. The work of a loop may refer to another loop, so it is dropped while all loops exist.
    for (auto& io_thread : io_threads_) io_thread->stop();
    listeners_.clear();
    for (auto& io_thread : io_threads_) {
      io_thread->loop().drop_work();
      io_thread->answer_by(nullptr);  // its snapshot of the catalog holds models
    }
    if (telemetry_.otlp) telemetry_.otlp->stop();
  }

  // Returns after a drain; throws if a model could not be loaded at start.
  void run() {
    wait_for_signal();
    wait_for_hangup();
    if (admission_.credentials.from_files() || signatures_.on()) look_at_credentials();
    if (remote_)
      remote_->start([this] { control_.sources_changed(); },
                     [this](const std::string& address, const std::string& reason) {
                       repository_.set_away(address, {reason, false});
                     });
    for (auto& listener : listeners_) listener->start();
    for (auto& io_thread : io_threads_) io_thread->start();
    if (grpc_) grpc_->start();
    if (telemetry_.otlp) {
      log_info("spans and metrics to {}", config_.otlp);
      telemetry_.otlp->start([this, look = std::make_shared<telemetry::HostLook>()](telemetry::MetricSink& sink) {
        api::give_metrics(admission_, telemetry_, *repository_.snapshot(), sink, *look);
      });
    }
    control_.start();
    context_.run();
    end_at_next_signal();
    stop_control();
    guard_watcher_.leave();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // Checks the routes that the public listener offers besides inference at an address that other hosts reach. A client
  // certificate does not make its owner an administrator.
  void check_reach(const std::string& address) const {
    const auto known = admission_.credentials.snapshot();
    SCONCE_CHECK(
        !config_.http_admin || known->needs_token(http::kAdminScope), kInvalidArgument,
        "setting http_admin: an address that others can reach needs admin_token_file or a token of scope admin "
        "in token_file: ",
        address);
    SCONCE_CHECK(
        !config_.allow_shared_memory || config_.http_tls == TlsMode::kMutual || known->needs_token(http::kInferScope),
        kInvalidArgument,
        "setting allow_shared_memory: an address that others can reach needs a token of scope infer in "
        "token_file, or http_tls = mutual: ",
        address);
  }

  // Whether a model in the file may be pinned: in a package with several models, names continue after its stem.
  bool may_be_pinned(const registry::PackageFile& file) const {
    return std::any_of(config_.model_settings.begin(), config_.model_settings.end(), [&](const ModelSetting& setting) {
      const std::string& model = setting.model;
      return setting.key == "pinned" && (model == "*" || model == file.stem || model.starts_with(file.stem + "."));
    });
  }

  // Returns the repositories that could not be read.
  std::vector<registry::UnreadFolder> find_files(std::vector<registry::PackageFile>& files) const {
    const auto note = [](const std::string& text) { log_warn("{}", printable(text)); };
    registry::FoundFiles found = finder_.files(note);
    SCONCE_CHECK(found.unread.empty() || !config_.exit_on_error, kIo, found.unread.front().reason);
    files = std::move(found.files);
    return std::move(found.unread);
  }

  // A child process that waits for its task is ready when the first package is open. Without it, the load starts one.
  std::unique_ptr<TrialProcess> start_child() const {
    std::unique_ptr<TrialProcess> child;
    if (config_.tries_at_start() && std::any_of(files_.begin(), files_.end(), may_be_tried_first))
      succeeds([&] { child = std::make_unique<TrialProcess>(kProgram); });
    return child;
  }

  std::vector<registry::PackageEntry> find_packages() {
    std::vector<registry::PackageFile> at_start;
    for (const registry::PackageFile& file : files_)
      if (!file.on_demand || may_be_pinned(file)) at_start.push_back(file);
    std::erase_if(files_, [](const registry::PackageFile& file) { return !file.on_demand; });
    std::vector<registry::PackageEntry> packages =
        registry::ModelLoader::open(finder_, at_start, config_.exit_on_error);
    std::erase_if(packages, [this](const registry::PackageEntry& package) {
      return package.file.on_demand && !config_.model(package.name, package.settings).pinned;
    });
    std::vector<std::string> names;
    for (const registry::PackageFile& file : files_) names.push_back(file.stem);
    for (const registry::PackageEntry& package : packages) {
      if (names.empty() || names.back() != package.name) names.push_back(package.name);
    }
    if (finder_.has_repository()) {
      // A model that a setting names may be added later.
      for (const ModelSetting& setting : config_.model_settings) {
        const auto is_named = [&](const std::string& name) {
          return setting.model == name || (finder_.loads_on_demand() && setting.model.starts_with(name + "."));
        };
        if (setting.model != "*" && std::none_of(names.begin(), names.end(), is_named))
          log_warn("setting {} is for an unknown model: {}", setting.key, setting.model);
      }
    } else {
      config_.check_model_names(names);
    }
    return packages;
  }

  // With weights_store, a restart knows the results of pushes. Those of named sets are stored in the sets' files.
  void keep_end(const rollout::PushRecord& push) noexcept {
    if (!push.terms.set.empty()) return;
    succeeds([&] {
      const std::shared_ptr<weights::StoredWeights> stored = store_.of(push.model, push.version);
      if (!stored) return;
      const MutexLock lock(stored->write_mutex());
      const std::string problem = stored->note(rollout::note_of(push));
      if (!problem.empty())
        log_warn("model {} version {}: the result of push {} is not stored: {}", push.model, push.version,
                 push.terms.id, printable(problem));
    });
  }

  void wait_for_signal() {
    const int first = announce_first_signal(
        std::chrono::ceil<std::chrono::milliseconds>(config_.drain_grace + config_.drain_timeout + kCutOff));
    end_.assign(::dup(first));
    // Boost 1.81 takes a descriptor for readable if FIONBIO is not supported for it, even though its fallback works.
    boost::system::error_code problem;
    end_.native_non_blocking(true, problem);
    SCONCE_CHECK(!problem && end_.native_non_blocking(), kIo,
                 "cannot wait for signals: ", problem ? problem.message() : "FIONBIO is not supported");
    end_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& ec) {
      if (!ec) drain();
    });
  }

  void wait_for_hangup() {
    hangups_.async_wait([this](const boost::system::error_code& ec, int) {
      if (ec) return;
      refresh(true);
      if (remote_) remote_->look_now();
      wait_for_hangup();
    });
  }

  void refresh(bool all) noexcept {
    succeeds([&] { admission_.credentials.refresh(all); });
    succeeds([&] { signatures_.refresh(all); });
  }

  void look_at_credentials() {
    credentials_timer_.expires_after(kLook);
    credentials_timer_.async_wait([this](const boost::system::error_code& ec) {
      if (ec) return;
      refresh(false);
      look_at_credentials();
    });
  }

  // Waits for the load in progress, if there is one: in a drain, no longer than for requests. A load can be aborted,
  // because it changes no durable state and its model would serve no requests.
  void stop_control() {
    if (!signalled_) return control_.stop();
    std::promise<void> stopped;
    std::future<void> done = stopped.get_future();
    std::thread waiting([this, &stopped] {
      control_.stop();
      stopped.set_value();
    });
    if (done.wait_until(std::min(load_end_, http::IoThread::Clock::now() + kLastLoad)) == std::future_status::timeout) {
      log_warn("a load still runs at the end of the server: cut off");
      guard_watcher_.leave();
      if (telemetry_.otlp) telemetry_.otlp->stop();
      log_info("ended");
      end_log();
      std::_Exit(0);
    }
    waiting.join();
  }

  void drain() {
    signalled_ = true;
    log_info("draining: not ready from now on, serving for {} ms more",
             std::chrono::duration_cast<std::chrono::milliseconds>(config_.drain_grace).count());
    draining_ = true;
    control_.end_loads();
    if (remote_) remote_->cancel();
    timer_.expires_after(config_.drain_grace);
    timer_.async_wait([this](const boost::system::error_code& ec) {
      if (!ec) stop_accepting();
    });
  }

  void stop_accepting() {
    std::promise<void> stopped;
    std::future<void> done = stopped.get_future();
    io_threads_.back()->loop().call([&] {
      for (auto& listener : listeners_) listener->stop();
      stopped.set_value();
    });
    done.wait();
    rollout_.operations.cancel_all("the server is shutting down");
    drain_end_ = load_end_ = http::IoThread::Clock::now() + config_.drain_timeout;
    if (grpc_) grpc_->stop(drain_end_);
    wait_for_connections();
  }

  void wait_for_connections() {
    // Until its requests are answered, a connection may become idle at any time.
    for (auto& io_thread : io_threads_) io_thread->close_idle();
    if (connections_.all() == 0 && (!grpc_ || grpc_->stopped())) return context_.stop();
    if (http::IoThread::Clock::now() >= drain_end_) end_clients();
    timer_.expires_after(std::chrono::milliseconds(10));
    timer_.async_wait([this](const boost::system::error_code& ec) {
      if (!ec) wait_for_connections();
    });
  }

  void end_loops() {
    const std::shared_ptr<const registry::Catalog> catalog = repository_.snapshot();
    for (const registry::Catalog::Entry& entry : catalog->entries())
      for (const registry::Catalog::Version& version : entry.versions)
        if (version.model) version.model->end_loops("the server is shutting down");
  }

  // Ends connections that are not done after drain_timeout: first answers clients that have not sent their whole
  // request, then closes connections. Requests to a model that does not answer end with the process.
  void end_clients() {
    switch (endings_++) {
      case 0:
        log_warn("{} connections still busy after drain_timeout: connections that wait for their client are closed",
                 connections_.all());
        end_loops();
        for (auto& io_thread : io_threads_) io_thread->end_clients(true);
        break;
      case 1:
        for (auto& io_thread : io_threads_) io_thread->end_clients(false);
        break;
      default:
        log_error("{} requests still run after drain_timeout: cut off", connections_.all());
        end_log();
        std::_Exit(1);
    }
    drain_end_ = http::IoThread::Clock::now() + kLastWords;
  }

  // Called on the loader thread, which is joined before the failure is read. Allocates nothing, because the failure may
  // be a lack of memory.
  void fail(std::exception_ptr failure) noexcept {
    draining_ = true;
    failure_ = std::move(failure);
    context_.stop();
  }

  const std::unique_ptr<registry::RemoteSources> remote_;  // null: no remote sources
  const ServerConfig config_;                              // with local folders in place of remote addresses
  const size_t threads_;
  signing::SignatureRule signatures_;
  const registry::PackageFinder finder_;
  std::vector<registry::PackageFile> files_;  // of models that are loaded on demand, until on_demand_ has them
  const std::vector<registry::UnreadFolder> unread_;
  std::unique_ptr<TrialProcess> trial_;           // until control_ takes it
  std::vector<registry::PackageEntry> packages_;  // the packages that the loader thread loads first
  ModelBudget budget_;
  asio::io_context context_{1};
  RequestBudget request_memory_;                             // outlives the models, which may keep inputs
  http::OpenConnections connections_;                        // outlives the I/O threads
  std::vector<std::unique_ptr<http::IoThread>> io_threads_;  // outlive the models, whose replica threads wake them
  TimerQueue clock_;                                         // outlives the models that set it
  scheduling::IdleWatch idle_watch_{[this] { control_.wake(); }};  // outlives the models that notify it
  DeferredDeleter reaper_;                                         // outlives all owners of models
  registry::Repository repository_;
  weights::WeightStore store_;
  std::unique_ptr<registry::OnDemand> on_demand_;  // null: all models are loaded at start
  registry::ModelLoader control_;
  std::atomic<bool> draining_{false};  // the server is not ready, and each answer closes its connection
  api::Admission admission_;
  telemetry::Telemetry telemetry_;
  rollout::Rollout rollout_;
  rollout::PushReconciler reconciler_;
  rollout::GuardWatcher guard_watcher_;
  asio::posix::stream_descriptor end_;  // readable from the first signal on
  asio::signal_set hangups_;
  asio::steady_timer credentials_timer_, timer_;
  std::vector<std::unique_ptr<http::Listener>> listeners_;
  std::unique_ptr<rpc::GrpcFront> grpc_;
  http::IoThread::Clock::time_point drain_end_, load_end_;
  int endings_ = 0;
  bool signalled_ = false;  // a signal has arrived
  std::exception_ptr failure_;
};

void log_file_event(const MappedFileEvent& event) noexcept {
  succeeds([&] {
    if (event.lost) {
      log_error("{}: {}; its models answer with errors until they are loaded again", printable(event.path), event.lost);
    } else {
      log_warn("{} is written in place: its old content, {} bytes, is served from memory; replace packages by renaming",
               printable(event.path), event.copied);
    }
  });
}

}  // namespace

bool run_server(const ServerConfig& config, std::span<const std::string> warnings) {
  LeftOut::check_settings(config);
  start_log(config.log_level, config.log_format);
  telemetry::keep_log_lines();
  struct LastLines {
    ~LastLines() {
      on_mapped_file_event(nullptr);
      end_log();
    }
  } last_lines;
  on_mapped_file_event(&log_file_event);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // the write to a file at its size limit reports the error
  write_nan_as_null(config.nan_as_null);
  log_info("sconce {}", version());
  for (const std::string& warning : warnings) log_warn("{}", printable(warning));
  ServerConfig fitted = config;
  fit_to_descriptors(fitted);
  Server(fitted).run();
  log_info("ended");
  return registry::restart_wanted();
}

}  // namespace sconce::server
