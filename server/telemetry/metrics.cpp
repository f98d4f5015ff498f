#include "server/telemetry/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <type_traits>

#include "package_format/files/directory.h"
#include "server/registry/model_weights.h"

namespace sconce::server::telemetry {
namespace {

enum MetricId : size_t {
#define METRIC(id, kind, name, labels, help) id,
#include "server/telemetry/metrics.def"
#undef METRIC
};

constexpr MetricRow kRows[] = {
#define METRIC(id, kind, name, labels, help) {name, #kind, labels, help},
#include "server/telemetry/metrics.def"
#undef METRIC
};

// One model's data.
struct Sample {
  std::string labels;  // model="m",version="1"
  const registry::ServedModel* model;
  scheduling::Totals totals;
  // Totals of its replicas on CUDA devices.
  int64_t devices = 0, graphs = 0, graph_fallbacks = 0;
  uint64_t graph_replays = 0;
  int64_t waiting = 0,
          running = 0;  // waiting: requests that wait for a run; running: runs in progress, or decode loops
};

Sample sample_of(std::string labels, const registry::ServedModel& model) {
  Sample sample{std::move(labels), &model, model.statistics().totals()};
  if (model.is_pipeline()) return sample;  // its steps are requests to other models
  const int64_t running = model.statistics().loops().running.load(std::memory_order_relaxed);
  // Steps of decode loops do not count as requests.
  sample.waiting = model.loop() ? 0 : model.pending();
  sample.running = model.loop() ? running : 0;
  for (const ReplicaInfo& replica : model.model().replicas()) {
    if (!model.loop()) sample.running += static_cast<int64_t>(replica.load);
    if (replica.device.type != DeviceType::kCuda) continue;
    ++sample.devices;
    sample.graphs += replica.graphs;
    sample.graph_replays += replica.graph_runs;
    sample.graph_fallbacks += !replica.no_graphs.empty();
  }
  return sample;
}

// Prometheus' text format (0.0.4).
class TextSink final : public MetricSink {
 public:
  void begin(const MetricRow& row) override {
    row_ = &row;
    put("# HELP {} {}\n# TYPE {} {}\n", row.name, row.help, row.name, row.kind);
  }
  void integer(std::string_view labels, int64_t number) override { value(labels, number); }
  void real(std::string_view labels, double number) override { value(labels, number); }
  void histogram(std::string_view labels, std::span<const double> bounds, std::span<const uint64_t> counts,
                 double sum) override {
    uint64_t count = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      count += counts[i];
      const std::string bound = i < bounds.size() ? fmt::format("{}", bounds[i]) : "+Inf";
      put("{}_bucket{{{},le=\"{}\"}} {}\n", row_->name, labels, bound, count);
    }
    put("{}_sum{{{}}} {}\n", row_->name, labels, sum);
    put("{}_count{{{}}} {}\n", row_->name, labels, count);
  }
  std::string take() { return fmt::to_string(buffer_); }

 private:
  void value(std::string_view labels, auto number) {
    if (labels.empty()) return put("{} {}\n", row_->name, number);
    put("{}{{{}}} {}\n", row_->name, labels, number);
  }
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
  }
  fmt::memory_buffer buffer_;
  const MetricRow* row_ = nullptr;
};

// Passes the values of the table's rows to a sink.
class Rows {
 public:
  explicit Rows(MetricSink& sink) : sink_(sink) {}
  void head(MetricId id) { sink_.begin(kRows[id]); }
  // A value of the row that head() began.
  void value(std::string_view labels, auto number) {
    if constexpr (std::is_floating_point_v<decltype(number)>) {
      sink_.real(labels, number);
    } else {
      sink_.integer(labels, static_cast<int64_t>(number));
    }
  }
  template <size_t n>
  void histogram(std::string_view labels, const std::array<uint64_t, n>& buckets, uint64_t sum_ns,
                 double units_per_second = 1) {
    std::array<double, scheduling::kLatencyBuckets.size()> bounds;
    std::transform(scheduling::kLatencyBuckets.begin(), scheduling::kLatencyBuckets.end(), bounds.begin(),
                   [&](auto micros) { return static_cast<double>(micros) * units_per_second / 1e6; });
    sink_.histogram(labels, bounds, buckets, static_cast<double>(sum_ns) * units_per_second * 1e-9);
  }
  void batch_rows(std::string_view labels, const std::map<int64_t, scheduling::BatchTotals>& batches) {
    constexpr std::array<double, 11> kBounds = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
    std::array<uint64_t, kBounds.size() + 1> counts{};
    uint64_t rows = 0;
    for (const auto& [size, batch] : batches) {
      const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), static_cast<double>(size));
      counts[static_cast<size_t>(bound - kBounds.begin())] += batch.count;
      rows += static_cast<uint64_t>(size) * batch.count;
    }
    sink_.histogram(labels, kBounds, counts, static_cast<double>(rows));
  }
  void gpus(const std::vector<GpuState>& states) {
    const auto each = [&](MetricId id, auto member) {
      head(id);
      for (const GpuState& state : states) {
        if (state.*member) value(fmt::format("gpu_uuid=\"{}\"", state.uuid), *(state.*member));
      }
    };
    each(kGpuUse, &GpuState::utilization);
    each(kGpuMemory, &GpuState::memory_total);
    each(kGpuMemoryUsed, &GpuState::memory_used);
    each(kGpuPower, &GpuState::power_watts);
    each(kGpuPowerLimit, &GpuState::power_limit_watts);
    each(kGpuEnergy, &GpuState::energy_joules);
  }

 private:
  MetricSink& sink_;
};

void named_sets(Rows& rows, std::span<const Sample> samples) {
  struct Own {
    const scheduling::ModelSignature* model;
    NamedSetsMemory memory;
    std::vector<scheduling::ModelSets::Count> counts;
  };
  std::vector<Own> all;
  for (const Sample& sample : samples)
    if (const registry::ModelWeights* const weights = sample.model->find_weights(); weights && weights->sets())
      all.push_back({&sample.model->interface(), weights->model().named_sets_memory(), weights->sets()->counts()});
  rows.head(kSets);
  for (const Own& own : all)
    for (const auto& [state, count] :
         {std::pair("memory", own.memory.in_memory), std::pair("disk", own.memory.on_disk)})
      rows.value(fmt::format("model=\"{}\",state=\"{}\",version=\"{}\"", own.model->name, state, own.model->version),
                 count);
  rows.head(kSetBytes);
  for (const Own& own : all)
    rows.value(fmt::format("model=\"{}\",version=\"{}\"", own.model->name, own.model->version), own.memory.bytes);
  const auto each = [&](MetricId id, auto&& number) {
    rows.head(id);
    for (const Own& own : all)
      for (const scheduling::ModelSets::Count& count : own.counts)
        rows.value(
            fmt::format("model=\"{}\",set=\"{}\",version=\"{}\"", own.model->name, count.name, own.model->version),
            number(count));
  };
  each(kSetSuccess, [](const scheduling::ModelSets::Count& c) { return c.success; });
  each(kSetFailure, [](const scheduling::ModelSets::Count& c) { return c.failures; });
  each(kSetInferences, [](const scheduling::ModelSets::Count& c) { return c.rows; });
  each(kSetSeconds, [](const scheduling::ModelSets::Count& c) { return static_cast<double>(c.total_ns) * 1e-9; });
}

// Metrics of decode loops: the utilisation of slots, and the times of token streams.
void loops(Rows& rows, std::span<const Sample> samples) {
  const auto places = [&](MetricId id, int64_t (registry::ServedModel::*count)() const noexcept) {
    rows.head(id);
    for (const Sample& sample : samples)
      if (const int64_t number = (sample.model->*count)(); number > 0) rows.value(sample.labels, number);
  };
  places(kSequencePlaces, &registry::ServedModel::sequence_places);
  places(kLoopPlaces, &registry::ServedModel::loop_places);
  const auto times = [&](MetricId id, scheduling::SharedTimes scheduling::LoopCounts::*member,
                         double units_per_second) {
    rows.head(id);
    for (const Sample& sample : samples) {
      if (!sample.model->loop()) continue;
      const scheduling::SharedTimes& counted = sample.model->statistics().loops().*member;
      rows.histogram(sample.labels, counted.buckets(), counted.sum_ns(), units_per_second);
    }
  };
  times(kLoopFirst, &scheduling::LoopCounts::first, 1);
  times(kLoopBetween, &scheduling::LoopCounts::between, 1);
  times(kFirstResponse, &scheduling::LoopCounts::first, 1000);
}

void shadows(Rows& rows, std::span<const Sample> samples) {
  rows.head(kShadowRequests);
  for (const Sample& sample : samples) {
    registry::ModelWeights* const weights = sample.model->find_weights();
    if (!weights) continue;
    const scheduling::ModelSignature& model = sample.model->interface();
    const weights::Shadow::Totals totals = weights->shadow().totals();
    for (const auto& [result, count] : {std::pair("compared", totals.compared), std::pair("failed", totals.failed),
                                        std::pair("skipped", totals.skipped)})
      rows.value(fmt::format("model=\"{}\",result=\"{}\",version=\"{}\"", model.name, result, model.version), count);
  }
  const auto each = [&](MetricId id, auto member) {
    rows.head(id);
    for (const Sample& sample : samples)
      if (registry::ModelWeights* const weights = sample.model->find_weights())
        rows.value(sample.labels, weights->shadow().totals().*member);
  };
  each(kShadowArgmax, &weights::Shadow::Totals::other_argmax);
  each(kShadowNonfinite, &weights::Shadow::Totals::new_nonfinite);
  each(kShadowLargest, &weights::Shadow::Totals::largest);
}

void on_demand(Rows& rows, const registry::Catalog& catalog, const registry::OnDemand* models) {
  if (models == nullptr) {
    for (const MetricId id : {kDemandModels, kDemandLoads, kDemandSeconds, kDemandEvictions, kDemandWaiting,
                              kModelMemory, kModelMemoryLimit})
      rows.head(id);
    return;
  }
  const registry::OnDemand::Counts counts = models->counts(catalog);
  rows.head(kDemandModels);
  for (const auto& [state, count] :
       {std::pair("known", counts.known), std::pair("loading", counts.loading), std::pair("loaded", counts.loaded),
        std::pair("failed", counts.failed), std::pair("unloaded", counts.unloaded)})
    rows.value(fmt::format("state=\"{}\"", state), count);
  rows.head(kDemandLoads);
  rows.value("result=\"loaded\"", counts.loads);
  rows.value("result=\"failed\"", counts.failures);
  rows.head(kDemandSeconds);
  rows.value({}, static_cast<double>(counts.load_ns) * 1e-9);
  rows.head(kDemandEvictions);
  rows.value({}, counts.evictions);
  rows.head(kDemandWaiting);
  rows.value({}, counts.waiting);
  const auto name = [](int device) {
    return "device=\"" + (device == ModelBudget::kHost ? std::string("host") : std::to_string(device)) + "\"";
  };
  const ModelBudget::Bytes used = models->budget().used();
  rows.head(kModelMemory);
  for (const auto& [device, bytes] : used) rows.value(name(device), bytes);
  rows.head(kModelMemoryLimit);
  for (const auto& [device, bytes] : used) rows.value(name(device), models->budget().limit(device));
}

void remote(Rows& rows, const registry::RemoteCounters* counters) {
  rows.head(kRemoteFetched);
  if (counters) rows.value({}, counters->fetched.load());
  rows.head(kRemoteDownloads);
  if (counters) rows.value({}, counters->downloads.load());
  rows.head(kRemoteFailures);
  if (counters) rows.value({}, counters->failures.load());
  rows.head(kRemoteCache);
  if (counters) rows.value({}, counters->cache_bytes.load());
  rows.head(kRemoteLooked);
  if (counters) rows.value({}, counters->looked.load());
}

void exported(Rows& rows, const OtlpCounters* otlp) {
  rows.head(kOtlpSpans);
  for (size_t i = 0; otlp && i < otlp->spans.size(); ++i)
    rows.value(fmt::format("result=\"{}\"", OtlpCounters::kSpanResults[i]), otlp->spans[i].load());
  rows.head(kOtlpPushes);
  for (size_t signal = 0; otlp && signal < otlp->pushes.size(); ++signal)
    for (size_t i = 0; i < otlp->pushes[signal].size(); ++i)
      rows.value(
          fmt::format("result=\"{}\",signal=\"{}\"", OtlpCounters::kPushResults[i], OtlpCounters::kSignals[signal]),
          otlp->pushes[signal][i].load());
}

// 0 if unknown.
int64_t open_files() {
  std::error_code ec;
  const size_t count = names_in("/proc/self/fd", ec).size();
  return static_cast<int64_t>(count);
}

// Answers by path and status: the methods of a path are separate routes but one series.
using Responses = std::map<std::string_view, std::array<uint64_t, http::ConnectionCounters::kStatuses.size()>>;

Responses responses_of(const std::vector<http::ConnectionCounters>& connections,
                       std::span<const std::string_view> routes) {
  Responses responses;
  const auto add = [&](std::string_view name, size_t route) {
    auto& totals = responses[name];
    for (const http::ConnectionCounters& c : connections) {
      for (size_t i = 0; i < totals.size(); ++i) totals[i] += c.responses[route][i].load(std::memory_order_relaxed);
    }
  };
  for (size_t route = 0; route < routes.size(); ++route) add(routes[route], route);
  add("none", http::ConnectionCounters::kNoRoute);
  return responses;
}

// Total bytes, and those that are not available.
std::pair<uint64_t, uint64_t> host_memory() {
  std::ifstream file("/proc/meminfo");
  uint64_t total = 0, available = 0, value = 0;
  for (std::string key, unit; file >> key >> value; std::getline(file, unit)) {
    if (key == "MemTotal:") total = value * 1024;
    if (key == "MemAvailable:") available = value * 1024;
  }
  return {total, total - std::min(total, available)};
}

// Utilisation of all processors since the last call.
double processor_use(HostLook& look) {
  std::ifstream file("/proc/stat");
  std::string cpu;
  file >> cpu;
  uint64_t total = 0, idle = 0, value = 0;
  // user, nice, system, idle, iowait, irq, softirq, steal; guest time is included in user time.
  for (int i = 0; i < 8 && file >> value; ++i) {
    total += value;
    if (i == 3 || i == 4) idle += value;
  }
  const uint64_t busy = total - idle;
  const double use = total > look.total ? static_cast<double>(static_cast<int64_t>(busy - look.busy)) /
                                              static_cast<double>(total - look.total)
                                        : 0;
  look.busy = busy;
  look.total = total;
  return std::clamp(use, 0.0, 1.0);
}

// In the form of OpenTelemetry's conventions; a label without a value is omitted.
void call_durations(MetricSink& sink, const CallCounters& calls, std::span<const std::string_view> methods) {
  for (size_t method = 0; method < methods.size(); ++method) {
    for (size_t code = 0; code < CallCounters::kCodes; ++code) {
      const CallCounters::Row& row = calls.calls[method][code];
      std::array<uint64_t, CallCounters::kSeconds.size() + 1> counts{};
      std::transform(row.durations.begin(), row.durations.end(), counts.begin(),
                     [](const auto& count) { return count.load(std::memory_order_relaxed); });
      if (std::all_of(counts.begin(), counts.end(), [](uint64_t count) { return count == 0; })) continue;
      const std::string_view name = grpc_code_name(code);
      const std::string error = is_grpc_server_error(code) ? fmt::format("error_type=\"{}\",", name) : std::string();
      sink.histogram(fmt::format("{}rpc_method=\"{}/{}\",rpc_response_status_code=\"{}\",rpc_system_name=\"grpc\"",
                                 error, kGrpcService, methods[method], name),
                     CallCounters::kSeconds, counts,
                     static_cast<double>(row.nanoseconds.load(std::memory_order_relaxed)) * 1e-9);
    }
  }
}

}  // namespace

std::span<const MetricRow> metric_rows() noexcept { return kRows; }

std::string_view grpc_code_name(size_t code) noexcept {
  constexpr std::array<std::string_view, CallCounters::kCodes> kNames = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  return kNames[code < kNames.size() ? code : CallCounters::kUnknownCode];
}

bool is_grpc_server_error(size_t code) noexcept {
  constexpr std::array kCodes = {2, 4, 12, 13, 14, 15};
  return std::find(kCodes.begin(), kCodes.end(), static_cast<int>(code)) != kCodes.end();
}

// Resident pages times the page size.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void write_metrics(MetricSink& sink, const registry::Catalog& catalog,
                   const std::vector<http::ConnectionCounters>& connections, std::span<const std::string_view> routes,
                   const UpdateCounters& updates, const ServerTotals& totals, HostLook& look) {
  Rows rows(sink);
  std::vector<Sample> samples;
  rows.head(kModelReady);
  for (const registry::Catalog::Entry& entry : catalog.entries()) {
    for (const registry::Catalog::Version& version : entry.versions) {
      if (version.state == registry::Catalog::State::kUnloaded) continue;
      std::string labels = fmt::format("model=\"{}\",version=\"{}\"", entry.name, version.version());
      rows.value(labels, version.state == registry::Catalog::State::kReady ? 1 : 0);
      if (version.model) samples.push_back(sample_of(std::move(labels), *version.model));
    }
  }
  const auto each = [&](MetricId id, auto&& number) {
    rows.head(id);
    for (const Sample& sample : samples) rows.value(sample.labels, number(sample));
  };
  each(kRequestSuccess, [](const Sample& s) { return s.totals.success; });
  rows.head(kRequestFailure);
  constexpr std::string_view kReasons[scheduling::kFailureReasons] = {"REJECTED", "CANCELED", "BACKEND", "OTHER"};
  for (const Sample& sample : samples) {
    const scheduling::ModelSignature& m = sample.model->interface();
    for (size_t i = 0; i < scheduling::kFailureReasons; ++i) {
      rows.value(fmt::format("model=\"{}\",reason=\"{}\",version=\"{}\"", m.name, kReasons[i], m.version),
                 sample.totals.failures_by_reason[i]);
    }
  }
  each(kInferenceCount, [](const Sample& s) { return s.totals.inferences; });
  each(kExecutionCount, [](const Sample& s) { return s.totals.executions; });
  each(kRequestDuration, [](const Sample& s) { return s.totals.total_ns / 1000; });
  each(kQueueDuration, [](const Sample& s) { return s.totals.queue_ns / 1000; });
  each(kInputDuration, [](const Sample& s) { return s.totals.input_ns / 1000; });
  each(kInferDuration, [](const Sample& s) { return s.totals.compute_ns / 1000; });
  each(kOutputDuration, [](const Sample& s) { return s.totals.output_ns / 1000; });
  each(kPending, [](const Sample& s) { return s.model->pending(); });
  const auto each_of_a_package = [&](MetricId id, auto&& number) {
    rows.head(id);
    for (const Sample& sample : samples)
      if (const registry::ModelWeights* const weights = sample.model->find_weights())
        rows.value(sample.labels, number(weights->model()));
  };
  each_of_a_package(kLoadDuration,
                    [](const Model& m) { return std::chrono::duration<double>(m.info().load_time).count(); });
  each_of_a_package(kModelWeights, [](const Model& m) { return m.info().constant_bytes; });
  for (const MetricId id : {kModelWeightVersion, kFormerWeightVersion})
    each_of_a_package(id, [](const Model& m) { return m.weight_version(); });
  const auto each_stored = [&](MetricId id, auto&& number) {
    rows.head(id);
    for (const Sample& sample : samples)
      if (const registry::ModelWeights* const weights = sample.model->find_weights(); weights && weights->stored())
        rows.value(sample.labels, number(*weights->stored()));
  };
  for (const MetricId id : {kStoredWeightVersion, kFormerStoredVersion})
    each_stored(id, [](const weights::StoredWeights& stored) { return stored.status().weight_version; });
  for (const MetricId id : {kStoredProblem, kFormerStoredProblem})
    each_stored(id, [](const weights::StoredWeights& stored) { return stored.status().problem.empty() ? 0 : 1; });
  for (const MetricId id : {kStoredFailures, kFormerStoredFailures})
    each_stored(id, [](const weights::StoredWeights& stored) { return stored.failures(); });
  named_sets(rows, samples);
  const auto each_with_sequences = [&](MetricId id, uint64_t scheduling::Sequences::Counts::*count) {
    rows.head(id);
    for (const Sample& sample : samples)
      if (const scheduling::Sequences* const sequences = sample.model->sequences())
        rows.value(sample.labels, sequences->counts().*count);
  };
  each_with_sequences(kSequences, &scheduling::Sequences::Counts::live);
  each_with_sequences(kSequencesBegun, &scheduling::Sequences::Counts::begun);
  each_with_sequences(kSequencesIdle, &scheduling::Sequences::Counts::idle);
  each_with_sequences(kSequencesFailed, &scheduling::Sequences::Counts::failed);
  each_with_sequences(kSequencesRefused, &scheduling::Sequences::Counts::refused);
  const auto each_with_loop = [&](MetricId id, auto scheduling::LoopCounts::*count) {
    rows.head(id);
    for (const Sample& sample : samples)
      if (sample.model->loop())
        rows.value(sample.labels, (sample.model->statistics().loops().*count).load(std::memory_order_relaxed));
  };
  each_with_loop(kLoopsRunning, &scheduling::LoopCounts::running);
  each_with_loop(kLoopsBegun, &scheduling::LoopCounts::begun);
  each_with_loop(kLoopSteps, &scheduling::LoopCounts::steps);
  each_with_loop(kLoopTokens, &scheduling::LoopCounts::tokens);
  loops(rows, samples);
  rows.head(kWaiting);
  rows.value({}, std::accumulate(samples.begin(), samples.end(),
                                 totals.on_demand ? totals.on_demand->counts(catalog).waiting : int64_t{0},
                                 [](int64_t sum, const Sample& s) { return sum + s.waiting; }));
  rows.head(kRunning);
  rows.value({}, std::accumulate(samples.begin(), samples.end(), int64_t{0},
                                 [](int64_t sum, const Sample& s) { return sum + s.running; }));
  shadows(rows, samples);
  const auto each_on_devices = [&](MetricId id, auto&& number) {
    rows.head(id);
    for (const Sample& sample : samples)
      if (sample.devices > 0) rows.value(sample.labels, number(sample));
  };
  each_on_devices(kGraphs, [](const Sample& s) { return s.graphs; });
  each_on_devices(kGraphReplays, [](const Sample& s) { return s.graph_replays; });
  each_on_devices(kGraphFallbacks, [](const Sample& s) { return s.graph_fallbacks; });
  each(kLastSuccess, [](const Sample& s) { return static_cast<double>(s.totals.last_inference_ms) / 1000; });
  rows.head(kGolden);
  for (const Sample& sample : samples)
    if (const registry::ModelWeights* const weights = sample.model->find_weights(); weights && weights->golden())
      for (const bool good : {true, false}) {
        const scheduling::ModelSignature& model = sample.model->interface();
        rows.value(fmt::format("model=\"{}\",verdict=\"{}\",version=\"{}\"", model.name, good ? "passed" : "failed",
                               model.version),
                   weights->golden()->verdicts(good));
      }
  on_demand(rows, catalog, totals.on_demand);
  rows.head(kUpdates);
  rows.value("state=\"done\"", updates.done.load());
  rows.value("state=\"failed\"", updates.failed.load());
  rows.value("state=\"cancelled\"", updates.cancelled.load());
  rows.head(kGuards);
  rows.value("result=\"passed\"", updates.guards_passed.load());
  rows.value("result=\"rolled_back\"", updates.guards_rolled_back.load());
  rows.head(kModelRequest);
  for (const Sample& s : samples) rows.histogram(s.labels, s.totals.latency, s.totals.total_ns);
  rows.head(kModelCompute);
  for (const Sample& s : samples) rows.histogram(s.labels, s.totals.compute_latency, s.totals.compute_ns);
  rows.head(kModelQueue);
  for (const Sample& s : samples) rows.histogram(s.labels, s.totals.queue_latency, s.totals.queue_ns);
  rows.head(kBatchRows);
  for (const Sample& s : samples) rows.batch_rows(s.labels, s.totals.batches);

  const auto sum = [&](auto member) {
    uint64_t total = 0;
    for (const http::ConnectionCounters& c : connections) total += (c.*member).load(std::memory_order_relaxed);
    return total;
  };
  rows.head(kResponses);
  for (const auto& [route, totals] : responses_of(connections, routes)) {
    for (size_t i = 0; i < totals.size(); ++i) {
      if (totals[i] == 0) continue;
      rows.value(fmt::format("code=\"{}\",route=\"{}\"", http::ConnectionCounters::kStatuses[i], route), totals[i]);
    }
  }
  rows.head(kCalls);
  for (size_t method = 0; totals.calls != nullptr && method < totals.methods.size(); ++method) {
    for (size_t code = 0; code < CallCounters::kCodes; ++code) {
      const CallCounters::Row& row = totals.calls->calls[method][code];
      const uint64_t count = std::accumulate(row.durations.begin(), row.durations.end(), uint64_t{0});
      if (count != 0) rows.value(fmt::format("code=\"{}\",method=\"{}\"", code, totals.methods[method]), count);
    }
  }
  rows.head(kCallDurations);
  if (totals.calls != nullptr) call_durations(sink, *totals.calls, totals.methods);
  rows.head(kCallsClosed);
  for (size_t why = 0; totals.calls != nullptr && why < CallCounters::kReasons.size(); ++why)
    rows.value(fmt::format("reason=\"{}\"", CallCounters::kReasons[why]),
               totals.calls->closed[why].load(std::memory_order_relaxed));
  const auto single = [&](MetricId id, auto number) {
    rows.head(id);
    rows.value({}, number);
  };
  const uint64_t closed = sum(&http::ConnectionCounters::closed), accepted = sum(&http::ConnectionCounters::accepted);
  single(kConnections, accepted - std::min(accepted, closed));
  single(kAccepted, accepted);
  single(kCallConnections, totals.calls != nullptr ? totals.calls->connections.load(std::memory_order_relaxed) : 0);
  const uint64_t begun = sum(&http::ConnectionCounters::bodies_in), over = sum(&http::ConnectionCounters::bodies_out);
  single(kInFlight, begun - std::min(begun, over));
  single(kRequestMemory, totals.request_memory);
  single(kRequestMemoryLimit, totals.request_memory_limit);
  single(kLostTraces, totals.lost_traces);
  single(kFailedTraces, totals.failed_traces);
  single(kAuditFailures, totals.audit_failures);
  exported(rows, totals.otlp);
  remote(rows, totals.remote);
  single(kLostLines, totals.lost_lines);
  single(kHeldLines, totals.held_lines);
  const auto [total_memory, used_memory] = host_memory();
  single(kCpuUse, processor_use(look));
  single(kCpuMemory, total_memory);
  single(kCpuMemoryUsed, used_memory);
  // Loads the driver's library only if a model uses its devices.
  const bool on_gpus = std::any_of(samples.begin(), samples.end(), [](const Sample& s) { return s.devices > 0; });
  rows.gpus(on_gpus ? look.gpus.look() : std::vector<GpuState>{});
  single(kReceived, sum(&http::ConnectionCounters::received));
  single(kSent, sum(&http::ConnectionCounters::sent));
  single(kResident, resident_bytes());
  single(kStartTime, std::round(totals.start_time * 1000) / 1000);
  if (const int64_t files = open_files(); files != 0) single(kOpenFiles, files);
}

std::string metrics_text(const registry::Catalog& catalog, const std::vector<http::ConnectionCounters>& connections,
                         std::span<const std::string_view> routes, const UpdateCounters& updates,
                         const ServerTotals& totals, HostLook& look) {
  TextSink sink;
  write_metrics(sink, catalog, connections, routes, updates, totals, look);
  return sink.take();
}

}  // namespace sconce::server::telemetry
