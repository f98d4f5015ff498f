#include "server/console/overview.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "server/support/json_document.h"

namespace sconce::server::console {
namespace {

using Json = OrderedJson;

template <class Value>
Json value_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_nothing(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json described(const Overview::Server& server) {
  return {{"version", server.version},         {"instance", server.instance},
          {"started", server.started},         {"ready", server.ready},
          {"draining", server.draining},       {"resident_bytes", server.resident_bytes},
          {"cpu_seconds", server.cpu_seconds}, {"connections", server.connections},
          {"consoles", server.consoles},       {"requests", server.requests},
          {"lost_lines", server.lost_lines}};
}

Json described(const telemetry::GpuState& gpu) {
  return {{"uuid", gpu.uuid},
          {"utilization", value_or_null(gpu.utilization)},
          {"memory_used", value_or_null(gpu.memory_used)},
          {"memory_total", value_or_null(gpu.memory_total)},
          {"power_watts", value_or_null(gpu.power_watts)}};
}

Json described(const Overview::Model& model) {
  const scheduling::Totals& totals = model.totals;
  Json batches = Json::array();
  for (const auto& [rows, batch] : totals.batches) batches.push_back(Json::array({rows, batch.count}));
  return {{"name", model.name},
          {"version", std::to_string(model.version)},
          {"state", model.state},
          {"reason", model.reason},
          {"kind", model.pipeline ? "pipeline" : "package"},
          {"weight_version", model.weight_version},
          {"generation", model.weight_version},  // deprecated
          {"label", text_or_nothing(model.label)},
          {"staged", model.staged},
          {"sets", model.sets},
          {"weight_bytes", model.weight_bytes},
          {"set_bytes", model.set_bytes},
          {"replicas", model.replicas},
          {"devices", model.devices},
          {"queue", model.queue},
          {"success", totals.success},
          {"failures", totals.failures},
          {"inferences", totals.inferences},
          {"executions", totals.executions},
          {"total_ns", totals.total_ns},
          {"queue_ns", totals.queue_ns},
          {"input_ns", totals.input_ns},
          {"compute_ns", totals.compute_ns},
          {"output_ns", totals.output_ns},
          {"latency", totals.latency},
          {"batches", std::move(batches)},
          {"rejected", totals.failures_by_reason[static_cast<size_t>(scheduling::FailureReason::kRejected)]},
          {"sequences", model.sequences},
          {"loops", model.loops},
          {"tokens", model.tokens},
          {"weights_problem", model.weights_problem}};
}

Json described(const Overview::Operation& operation) {
  return {{"id", operation.id},
          {"model", operation.model},
          {"version", std::to_string(operation.version)},
          {"state", rollout::state_name(operation.state)},
          {"phase", rollout::phase_name(operation.phase)},
          {"bytes", operation.bytes},
          {"total", operation.total},
          {"seconds", operation.seconds},
          {"label", operation.label}};
}

Json described(const Alert& alert) {
  return {{"severity", alert.critical ? "critical" : "warning"},
          {"model", text_or_nothing(alert.model)},
          {"text", alert.text}};
}

template <class Value>
Json list_of(const std::vector<Value>& values) {
  Json list = Json::array();
  for (const Value& value : values) list.push_back(described(value));
  return list;
}

uint64_t refused(const Overview::Model& model) noexcept {
  return model.totals.failures_by_reason[static_cast<size_t>(scheduling::FailureReason::kRejected)];
}

const Overview::Model* same_model(const Overview* before, const Overview::Model& model) noexcept {
  if (before == nullptr) return nullptr;
  for (const Overview::Model& one : before->models)
    if (one.name == model.name && one.version == model.version) return &one;
  return nullptr;
}

void add_alerts(const Overview::Model& model, const Overview::Model* before, std::vector<Alert>& alerts) {
  const std::string_view state = model.state;
  const std::string name = fmt::format("{} version {}", model.name, model.version);
  const auto add = [&](bool critical, std::string text) { alerts.push_back({critical, model.name, std::move(text)}); };
  if (state == "UNAVAILABLE" || state == "HELD") add(true, fmt::format("{} is not ready: {}", name, model.reason));
  if (state == "LOADING") add(false, name + " is loading");
  if (state == "READY" && !model.reason.empty()) add(false, fmt::format("{}: {}", name, model.reason));
  for (const std::string& lost : model.lost) add(true, fmt::format("{} lost {}", name, lost));
  if (before != nullptr && refused(model) > refused(*before))
    add(false, fmt::format("{} refuses requests: {} since the last look, {} wait", name,
                           refused(model) - refused(*before), model.queue));
  if (!model.weights_problem.empty() && model.weights_problem != model.reason)
    add(false, fmt::format("the weights of {} are not stored: {}", name, model.weights_problem));
  for (const std::string& peer : model.peers) add(false, fmt::format("{}: {}", name, peer));
}

}  // namespace

std::vector<Alert> alerts_of(const Overview& now, const Overview* before) {
  std::vector<Alert> alerts;
  if (now.server.draining) alerts.push_back({true, {}, "the server is shutting down"});
  for (const std::string& away : now.server.away) alerts.push_back({true, {}, "a repository is away: " + away});
  for (const Overview::Model& model : now.models) add_alerts(model, same_model(before, model), alerts);
  if (before != nullptr && now.server.lost_lines > before->server.lost_lines)
    alerts.push_back({false,
                      {},
                      fmt::format("{} lines of the log were lost since the last look: nobody reads it in time",
                                  now.server.lost_lines - before->server.lost_lines)});
  std::stable_partition(alerts.begin(), alerts.end(), [](const Alert& alert) { return alert.critical; });
  return alerts;
}

std::string overview_document(const Overview& now, const std::vector<Alert>& alerts) {
  Json json = {{"time", now.time}, {"server", described(now.server)}};
  json["gpus"] = list_of(now.gpus);
  json["models"] = list_of(now.models);
  json["latency_bounds_us"] = scheduling::kLatencyBuckets;
  json["operations"] = list_of(now.operations);
  json["alerts"] = list_of(alerts);
  return dump(json);
}

}  // namespace sconce::server::console
