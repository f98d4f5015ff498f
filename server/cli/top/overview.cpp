#include "server/cli/top/overview.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sconce/check.h"
#include "server/support/log.h"

namespace sconce::server::cli {
namespace {

// Number of events for latencies and batch sizes, because single events have few requests.
constexpr size_t kEvents = 11;
constexpr size_t kMaxRates = 60;

const OrderedJson* part_of(const OrderedJson& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}
std::string printable_part(const OrderedJson& object, const char* key) {
  const OrderedJson* const value = part_of(object, key);
  if (value == nullptr || value->is_null()) return {};
  return printable(value->is_string() ? value->get<std::string>() : dump(*value));
}
std::optional<double> real_part(const OrderedJson& object, const char* key) {
  const OrderedJson* const value = part_of(object, key);
  return value != nullptr && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}
uint64_t count_of(const OrderedJson& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (!value.is_number()) return 0;
  const double number = value.get<double>();
  return number >= 0 && number < 1e18 ? static_cast<uint64_t>(number) : 0;
}
uint64_t count_part(const OrderedJson& object, const char* key) {
  const OrderedJson* const value = part_of(object, key);
  return value == nullptr ? 0 : count_of(*value);
}
bool is_true(const OrderedJson& object, const char* key) {
  const OrderedJson* const value = part_of(object, key);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}
const OrderedJson& list_part(const OrderedJson& object, const char* key) {
  static const OrderedJson none = OrderedJson::array();
  const OrderedJson* const value = part_of(object, key);
  return value != nullptr && value->is_array() ? *value : none;
}

LiveModel model_from(const OrderedJson& json) {
  LiveModel model;
  model.name = printable_part(json, "name");
  model.version = printable_part(json, "version");
  model.state = printable_part(json, "state");
  model.reason = printable_part(json, "reason");
  model.kind = printable_part(json, "kind");
  model.label = printable_part(json, "label");
  // A server of the release before has only the former name.
  model.weight_version = count_part(json, json.contains("weight_version") ? "weight_version" : "generation");
  model.weight_bytes = count_part(json, "weight_bytes");
  model.set_bytes = count_part(json, "set_bytes");
  model.replicas = count_part(json, "replicas");
  model.queue = count_part(json, "queue");
  model.staged = is_true(json, "staged");
  model.success = count_part(json, "success");
  model.failures = count_part(json, "failures");
  model.rejected = count_part(json, "rejected");
  model.inferences = count_part(json, "inferences");
  model.executions = count_part(json, "executions");
  model.tokens = count_part(json, "tokens");
  for (const OrderedJson& count : list_part(json, "latency")) model.latency.push_back(count_of(count));
  return model;
}

std::string key_of(const LiveModel& model) { return model.name + "/" + model.version; }

const LiveModel* find_model(const Overview& overview, const LiveModel& wanted) {
  for (const LiveModel& model : overview.models)
    if (model.name == wanted.name && model.version == wanted.version) return &model;
  return nullptr;
}

// The increase since then. A reloaded model counts from 0, so its whole count is new.
uint64_t since(uint64_t now, uint64_t before) { return now >= before ? now - before : now; }

std::optional<double> per_second(uint64_t count, const Overview& before, const Overview& now) {
  const double seconds = now.time - before.time;
  return seconds > 0 ? std::optional(static_cast<double>(count) / seconds) : std::nullopt;
}

// Assumes that times are spread evenly within a bucket.
std::optional<double> percentile_of(const std::vector<uint64_t>& counts, const std::vector<double>& bounds,
                                    double share) {
  uint64_t all = 0;
  for (const uint64_t count : counts) all += count;
  if (all == 0 || bounds.empty() || counts.size() != bounds.size() + 1) return std::nullopt;
  const double wanted = share * static_cast<double>(all);
  double below = 0;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const auto count = static_cast<double>(counts[i]);
    if (count > 0 && below + count >= wanted) {
      const double begin = i == 0 ? 0 : bounds[i - 1];
      return begin + (bounds[i] - begin) * (wanted - below) / count;
    }
    below += count;
  }
  return bounds.back();  // or later
}

}  // namespace

Overview overview_of(const OrderedJson& document) {
  const OrderedJson* const server = part_of(document, "server");
  SCONCE_CHECK(server != nullptr && server->is_object() && real_part(document, "time"), kInvalidArgument,
               "the server's answer is not an overview");
  Overview overview;
  overview.time = *real_part(document, "time");
  overview.started = real_part(*server, "started").value_or(overview.time);
  overview.version = printable_part(*server, "version");
  overview.instance = printable_part(*server, "instance");
  overview.ready = is_true(*server, "ready");
  overview.draining = is_true(*server, "draining");
  overview.resident_bytes = count_part(*server, "resident_bytes");
  overview.connections = count_part(*server, "connections");
  overview.requests = count_part(*server, "requests");
  overview.cpu_seconds = real_part(*server, "cpu_seconds").value_or(0);
  for (const OrderedJson& bound : list_part(document, "latency_bounds_us"))
    if (bound.is_number()) overview.bounds_s.push_back(bound.get<double>() * 1e-6);
  for (const OrderedJson& model : list_part(document, "models")) overview.models.push_back(model_from(model));
  for (const OrderedJson& gpu : list_part(document, "gpus"))
    overview.gpus.push_back({printable_part(gpu, "uuid"), real_part(gpu, "utilization"), real_part(gpu, "memory_used"),
                             real_part(gpu, "memory_total"), real_part(gpu, "power_watts")});
  for (const OrderedJson& json : list_part(document, "operations"))
    overview.operations.push_back({count_part(json, "id"), count_part(json, "bytes"), count_part(json, "total"),
                                   printable_part(json, "model"), printable_part(json, "version"),
                                   printable_part(json, "state"), printable_part(json, "phase"),
                                   printable_part(json, "label"), real_part(json, "seconds").value_or(0)});
  for (const OrderedJson& alert : list_part(document, "alerts"))
    overview.alerts.push_back({printable_part(alert, "severity") == "critical", printable_part(alert, "model"),
                               printable_part(alert, "text")});
  return overview;
}

void History::add(Overview overview) {
  // Another process answers, so its counts are unrelated to the earlier ones.
  if (!events_.empty() &&
      (overview.started != now().started || overview.instance != now().instance || overview.time <= now().time)) {
    events_.clear();
    rates_.clear();
  }
  events_.push_back(std::move(overview));
  if (events_.size() > kEvents) events_.pop_front();
  if (events_.size() < 2) return;
  const Overview& before = events_[events_.size() - 2];
  for (const LiveModel& model : now().models) {
    const LiveModel* const was = find_model(before, model);
    const uint64_t count = since(model.success + model.failures, was ? was->success + was->failures : 0);
    std::deque<double>& rates = rates_[key_of(model)];
    rates.push_back(per_second(count, before, now()).value_or(0));
    if (rates.size() > kMaxRates) rates.pop_front();
  }
  std::erase_if(rates_, [&](const auto& entry) {
    return std::none_of(now().models.begin(), now().models.end(),
                        [&](const LiveModel& model) { return key_of(model) == entry.first; });
  });
}

Rates History::of(const LiveModel& model) const {
  Rates rates;
  if (events_.size() < 2) return rates;
  const auto known = rates_.find(key_of(model));
  if (known != rates_.end()) rates.history.assign(known->second.begin(), known->second.end());
  if (!rates.history.empty()) rates.requests = rates.history.back();
  const Overview& before = events_[events_.size() - 2];
  const LiveModel* const last = find_model(before, model);
  rates.failures =
      per_second(since(model.failures + model.rejected, last ? last->failures + last->rejected : 0), before, now());
  const LiveModel* const first = find_model(events_.front(), model);
  std::vector<uint64_t> counts = model.latency;
  if (first != nullptr && first->latency.size() == counts.size())
    for (size_t i = 0; i < counts.size(); ++i) counts[i] = since(counts[i], first->latency[i]);
  rates.p50_s = percentile_of(counts, now().bounds_s, 0.5);
  rates.p99_s = percentile_of(counts, now().bounds_s, 0.99);
  const uint64_t runs = since(model.executions, first ? first->executions : 0);
  const uint64_t rows = since(model.inferences, first ? first->inferences : 0);
  if (runs > 0) rates.mean_batch = static_cast<double>(rows) / static_cast<double>(runs);
  return rates;
}

std::optional<double> History::requests() const {
  if (events_.size() < 2) return std::nullopt;
  const Overview& before = events_[events_.size() - 2];
  return per_second(since(now().requests, before.requests), before, now());
}

std::optional<double> History::cpu_share() const {
  if (events_.size() < 2) return std::nullopt;
  const Overview& before = events_[events_.size() - 2];
  const double seconds = now().time - before.time;
  return seconds > 0 ? std::optional(std::max(now().cpu_seconds - before.cpu_seconds, 0.0) / seconds) : std::nullopt;
}

}  // namespace sconce::server::cli
