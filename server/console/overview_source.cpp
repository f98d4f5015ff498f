#include "server/console/overview_source.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "sconce/version.h"
#include "server/console/feed.h"
#include "server/http/query.h"
#include "server/registry/model_weights.h"
#include "server/support/log.h"
#include "server/telemetry/metrics.h"
#include "server/weights/store/peer_weights.h"

namespace sconce::server::console {
namespace {

// Seconds for which an operation is shown after its end.
constexpr double kShown = 10;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double cpu_seconds() noexcept {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

uint64_t count_answers(const std::vector<http::ConnectionCounters>& counters) noexcept {
  uint64_t sum = 0;
  for (const http::ConnectionCounters& one : counters)
    for (const auto& route : one.responses)
      for (const auto& status : route) sum += status.load(std::memory_order_relaxed);
  return sum;
}

const char* state_of(const registry::Catalog::Version& version) {
  switch (version.state) {
    case registry::Catalog::State::kLoading:
      return "LOADING";
    case registry::Catalog::State::kReady:
      return version.fault().empty() ? "READY" : "UNAVAILABLE";
    case registry::Catalog::State::kNotServing:
      return "HELD";
    case registry::Catalog::State::kUnavailable:
      return "UNAVAILABLE";
    default:
      return "UNLOADED";
  }
}

void describe_weights(const Model& model, Overview::Model& one) {
  for (const WeightSetInfo& set : model.weight_sets()) {
    one.staged = one.staged || set.state == WeightState::kStaged;
    if (set.state != WeightState::kActive) continue;
    one.weight_version = set.weight_version;
    one.label = set.label;
    one.weight_bytes = set.bytes;
  }
}

void describe_replicas(const Model& model, Overview::Model& one) {
  for (const ReplicaInfo& replica : model.replicas()) {
    const std::string device = to_string(replica.device);
    if (std::find(one.devices.begin(), one.devices.end(), device) == one.devices.end()) one.devices.push_back(device);
    if (!replica.failure.empty())
      one.lost.push_back("replica " + std::to_string(replica.index) + " on " + device + ": " + replica.failure);
  }
}

void describe_served(const registry::ServedModel& served, Overview::Model& one) {
  one.replicas = served.replicas();
  one.queue = served.pending();
  one.totals = served.statistics().totals();
  if (const scheduling::Sequences* const sequences = served.sequences()) one.sequences = sequences->counts().live;
  if (served.loop() != nullptr) {
    const scheduling::LoopCounts& loops = served.statistics().loops();
    one.loops = loops.running.load(std::memory_order_relaxed);
    one.tokens = loops.tokens.load(std::memory_order_relaxed);
  }
  const registry::ModelWeights* const weights = served.find_weights();
  if (weights == nullptr) return;
  if (weights->stored()) one.weights_problem = weights->stored()->status().problem;
  describe_weights(weights->model(), one);
  describe_replicas(weights->model(), one);
  if (weights->sets() != nullptr) {
    const NamedSetsMemory sets = weights->model().named_sets_memory();
    one.sets = sets.in_memory + sets.on_disk;
    one.set_bytes = sets.bytes;
  }
}

Overview::Model described(const registry::Catalog::Entry& entry, const registry::Catalog::Version& version) {
  Overview::Model one;
  one.name = entry.name;
  one.version = version.version();
  one.state = state_of(version);
  const std::string fault = version.fault();
  one.reason = !fault.empty() ? fault : !version.held.empty() ? version.held : version.reason;
  one.pipeline = version.pipeline != nullptr;
  if (version.model) describe_served(*version.model, one);
  return one;
}

std::vector<Overview::Operation> operations_of(const rollout::OperationLog& log) {
  std::vector<Overview::Operation> operations;
  for (const std::shared_ptr<rollout::Operation>& operation : log.list()) {
    const rollout::Operation::View view = operation->view();
    if (view.state != rollout::Operation::State::kRunning && view.seconds_over > kShown) continue;
    operations.push_back({operation->id, operation->model, operation->label, operation->version, view.state, view.phase,
                          view.bytes, view.total, view.seconds});
  }
  return operations;
}

Overview overview_of(const rollout::Rollout& rollout, const telemetry::Telemetry& telemetry, int64_t readers) {
  const std::shared_ptr<const registry::Catalog> catalog = rollout.repository.snapshot();
  Overview now;
  now.time = now_seconds();
  now.server.version = version();
  now.server.instance = weights::instance_name();
  now.server.started = telemetry.start_time;
  now.server.draining = rollout.draining.load(std::memory_order_relaxed);
  now.server.ready = !now.server.draining && catalog->is_ready();
  now.server.resident_bytes = telemetry::resident_bytes();
  now.server.cpu_seconds = cpu_seconds();
  now.server.connections = telemetry.connections.all();
  now.server.consoles = readers;
  now.server.requests = count_answers(telemetry.counters);
  now.server.lost_lines = lost_log_lines();
  for (const auto& [name, away] : catalog->away()) now.server.away.push_back(name + ": " + away.reason);
  for (const registry::Catalog::Entry& entry : catalog->entries())
    for (const registry::Catalog::Version& version : entry.versions) now.models.push_back(described(entry, version));
  now.operations = operations_of(rollout.operations);
  return now;
}

// Findings about weights that are no longer served are outdated.
void add_peers(const PeerWatch::Others& others, Overview& overview) {
  for (Overview::Model& model : overview.models) {
    const auto found = others.find({model.name, model.version});
    if (found == others.end()) continue;
    for (const PeerWatch::Other& other : found->second)
      if (other.weight_version == model.weight_version)
        model.peers.push_back(other.url + " serves " + other.theirs + ", this server " + other.ours);
  }
}

bool on_gpus(const Overview& overview) {
  return std::any_of(overview.models.begin(), overview.models.end(), [](const Overview::Model& model) {
    return std::any_of(model.devices.begin(), model.devices.end(),
                       [](const std::string& device) { return device.starts_with("cuda"); });
  });
}

class OverviewFeed final : public Feed {
 public:
  explicit OverviewFeed(OverviewSource& source) : reader_(source) {}
  void append(TextBuffer& text, Clock::time_point now) override {
    if (const std::string* const event = reader_.next(now)) text.append(*event);
  }

 private:
  OverviewSource::Reader reader_;
};

}  // namespace

const std::string* OverviewSource::Reader::next(Clock::time_point now) {
  if (now >= source_.due_) source_.make(now);
  if (std::exchange(seen_, source_.number_) == source_.number_) return nullptr;
  return &source_.event_;
}

void OverviewSource::make(Clock::time_point now) {
  Overview next = overview_of(rollout_, telemetry_, readers_);
  // The driver's library is loaded only if a model uses its devices.
  if (on_gpus(next)) next.gpus = gpus_.look();
  add_peers(peers_.look(now), next);
  const std::vector<Alert> alerts = alerts_of(next, last_ ? &*last_ : nullptr);
  event_ = "event: overview\ndata: " + overview_document(next, alerts) + "\n\n";
  last_ = std::move(next);
  ++number_;
  // Events keep a fixed period, unless one was late.
  due_ = now - due_ < kPeriod ? due_ + kPeriod : now + kPeriod;
}

// Changes during a time without readers are not new to the next reader.
void OverviewSource::forget() noexcept {
  last_.reset();
  event_ = {};
  due_ = {};
}

std::unique_ptr<Feed> feeds::overview(OverviewSource& source, std::string_view query) {
  const http::Query none(query, {});
  return std::make_unique<OverviewFeed>(source);
}

}  // namespace sconce::server::console
