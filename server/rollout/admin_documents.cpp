#include "server/rollout/admin_documents.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "server/rollout/shadow_api.h"
#include "server/scheduling/signature/constant_type.h"
#include "server/support/enum_name.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "server/support/time_text.h"

namespace sconce::server::rollout {
namespace {

using Json = OrderedJson;

Json of_model(const std::string& name, int64_t version) {
  return {{"model", name}, {"version", std::to_string(version)}};
}

const char* state_name(WeightState state) noexcept { return name_of(state, {"active", "staged", "previous"}); }

const char* outcome_name(Operation::Outcome outcome) noexcept {
  return name_of(outcome, {"none", "checked", "staged", "active", "held"});
}

const char* replica_state(const Operation::View& view, const Operation::Replica& replica) noexcept {
  using State = Operation::Replica::State;
  if (view.state == Operation::State::kDone) return outcome_name(view.outcome);
  if (view.state != Operation::State::kRunning) return replica.state == State::kFolding ? "failed" : "unchanged";
  if (view.phase == Operation::Phase::kCommitting) return phase_name(view.phase);
  return replica.state == State::kWaiting ? "waiting" : replica.state == State::kFolding ? "folding" : "ready";
}

// Written by hand, because these documents are needed when memory is short, and nlohmann's values allocate in their
// destructors.
void append_member(std::string& text, const char* key, std::string_view value) {
  text.append(text.back() == '{' ? "\"" : ",\"").append(key).append("\":");
  append_json_string(text, value);
}
template <class Number>
void append_number(std::string& text, const char* key, Number value) {
  fmt::format_to(std::back_inserter(text), ",\"{}\":{}", key, value);
}

void append_operation(std::string& text, const Operation& operation) {
  const Operation::View view = operation.view();
  text += '{';
  append_member(text, "operation", std::to_string(operation.id));
  append_member(text, "model", operation.model);
  append_member(text, "version", std::to_string(operation.version));
  append_member(text, "label", operation.label);
  append_member(text, "state", state_name(view.state));
  append_member(text, "phase", phase_name(view.phase));
  append_number(text, "bytes", view.bytes);
  append_number(text, "total_bytes", view.total);
  append_number(text, "seconds", view.seconds);
  text += ",\"phase_seconds\":{";
  for (size_t i = 0; i < view.phase_seconds.size(); ++i)
    fmt::format_to(std::back_inserter(text), "{}\"{}\":{}", i == 0 ? "" : ",",
                   phase_name(static_cast<Operation::Phase>(i)), view.phase_seconds[i]);
  text += '}';
  if (view.copying_s > 0)
    fmt::format_to(std::back_inserter(text), ",\"shared_memory_seconds\":{{\"opening\":{},\"copying\":{}}}",
                   view.opening_s, view.copying_s);
  const bool failed = view.state == Operation::State::kFailed || view.state == Operation::State::kCancelled;
  if (view.state == Operation::State::kDone) append_member(text, "result", outcome_name(view.outcome));
  if (view.weight_version != 0) {
    append_number(text, "weight_version", view.weight_version);
    append_number(text, "generation", view.weight_version);  // deprecated
  }
  if (view.stored) {
    // "kept" and "kept_problem" are the former names, deprecated.
    for (const char* const name : {"stored", "kept"})
      text.append(",\"").append(name).append(*view.stored ? "\":true" : "\":false");
    if (!view.store_problem.empty()) {
      append_member(text, "store_problem", view.store_problem);
      append_member(text, "kept_problem", view.store_problem);
    }
  }
  if (!view.golden.empty()) text.append(",\"golden\":").append(view.golden);
  if (failed) {
    append_number(text, "status", view.status);
    append_member(text, "error", view.error);
  }
  text += ",\"replicas\":[";
  for (const Operation::Replica& replica : view.replicas) {
    fmt::format_to(std::back_inserter(text), "{}{{\"replica\":{}", text.back() == '[' ? "" : ",", replica.index);
    append_member(text, "device", to_string(replica.device));
    append_member(text, "state", replica_state(view, replica));
    append_number(text, "seconds", replica.seconds);
    text += '}';
  }
  text += "]}";
}

Json described(const GuardRecord& guard) {
  const std::chrono::duration<double> left = guard.end - GuardRecord::Clock::now();
  const auto ms = [](std::chrono::microseconds time) { return static_cast<double>(time.count()) * 1e-3; };
  const bool watching = guard.state == GuardState::kWatching;
  Json json = {{"state", guard_state_name(guard.state)},
               {"weight_version", guard.weight_version},
               {"generation", guard.weight_version},  // deprecated
               {"seconds_left", watching ? std::max(left.count(), 0.0) : 0.0},
               {"answers", guard.totals.answers},
               {"failures", guard.totals.failures},
               {"answers_with_nan", guard.totals.with_nan},
               {"p99_ms", ms(guard.totals.p99)},
               {"bounds",
                {{"seconds", ms(guard.bounds.window) * 1e-3},
                 {"errors", guard.bounds.errors},
                 {"nan", guard.bounds.nan},
                 {"p99_ms", guard.bounds.p99.count() > 0 ? Json(ms(guard.bounds.p99)) : Json(nullptr)}}}};
  if (!guard.push.empty()) json["push"] = guard.push;
  if (!guard.reason.empty()) json["reason"] = guard.reason;
  return json;
}

}  // namespace

std::string guard_document(const scheduling::ModelSignature& model, const std::optional<GuardRecord>& guard) {
  Json json = of_model(model.name, model.version);
  json.update(guard ? described(*guard) : Json{{"state", "none"}});
  return dump(json);
}

std::string weights_name(uint64_t weight_version, const std::string& label) {
  return label.empty() ? std::to_string(weight_version) : label;
}

std::string constants_document(const scheduling::ModelSignature& model, std::span<const ConstantSpec> constants) {
  Json json = of_model(model.name, model.version);
  json["constants"] = Json::array();
  for (const ConstantSpec& c : constants) {
    Json one = {{"name", c.fqn.empty() ? c.name : c.fqn}, {"internal_name", c.name}};
    one["dtype"] = c.dtype ? Json(dtype_name(*c.dtype)) : Json(nullptr);
    one["shape"] = c.shape;
    one["strides"] = c.strides;
    one["bytes"] = c.data_size;
    one["type"] = scheduling::constant_type_name(c.type);
    one["device"] = c.device ? Json(to_string(*c.device)) : Json(nullptr);
    one["folded"] = c.folded;
    one["mutated"] = c.mutated;
    one["assumed"] = c.assumed;
    one["opaque"] = c.opaque;
    json["constants"].push_back(std::move(one));
  }
  return dump(json);
}

void add_difference(OrderedJson& json, const Difference& difference, const char* not_finite_a,
                    const char* not_finite_b) {
  json["elements"] = difference.elements;
  json["changed"] = difference.changed;
  json["largest"] = number_or_null(difference.largest);
  json["largest_at"] = difference.largest_at;
  json["mean"] = number_or_null(difference.mean());
  json["relative"] = number_or_null(difference.relative());
  json["cosine"] = number_or_null(difference.cosine());
  json[not_finite_a] = difference.not_finite_a;
  json[not_finite_b] = difference.not_finite_b;
}

std::string difference_document(const scheduling::ModelSignature& model, WeightState to,
                                std::span<const TensorDifference> constants) {
  Json json = of_model(model.name, model.version);
  json["from"] = state_name(WeightState::kActive);
  json["to"] = state_name(to);
  json["constants"] = constants.size();
  size_t same = 0;
  Json differences = Json::array();
  for (const TensorDifference& constant : constants) {
    if (constant.kind == TensorDifference::Kind::kSame) {
      ++same;
      continue;
    }
    Json one = {{"name", constant.name}};
    add_difference(one, constant.difference, "not_finite_from", "not_finite_to");
    differences.push_back(std::move(one));
  }
  json["same"] = same;
  json["differences"] = std::move(differences);
  return dump(json);
}

std::string weights_document(const scheduling::ModelSignature& model, std::span<const WeightSetInfo> sets,
                             std::span<const std::string> digests, const WeightsState& state) {
  Json json = of_model(model.name, model.version);
  Json list = Json::array();
  uint64_t active = 0;
  for (size_t i = 0; i < sets.size(); ++i) {
    const WeightSetInfo& set = sets[i];
    if (set.state == WeightState::kActive) {
      active = set.weight_version;
      json["generation"] = active;  // deprecated: the active set below has it as "weight_version"
      json["weight_version"] = weights_name(set.weight_version, set.label);
    }
    Json one = {{"state", state_name(set.state)}};
    one["weight_version"] = set.weight_version != 0 ? Json(set.weight_version) : Json(nullptr);
    one["generation"] = one["weight_version"];  // deprecated
    one["label"] = set.label;
    one["bytes"] = set.bytes;
    one["own_bytes"] = set.own_bytes;
    one["since"] = time_text(set.since);
    if (!digests.empty()) one["digest"] = digests[i];
    if (state.golden && set.state == WeightState::kStaged && set.since == state.golden->staged)
      one["golden"] = weights::verdict_json(*state.golden);
    if (set.state == WeightState::kStaged && state.shadow) one["shadow"] = shadow_in_short(*state.shadow);
    list.push_back(std::move(one));
  }
  json["ready"] = state.ready;
  if (!state.reason.empty()) json["reason"] = state.reason;
  if (state.stored) {
    json["stored"] = active == state.stored->weight_version;
    json["kept"] = json["stored"];  // deprecated, as kept_problem
    if (!state.stored->problem.empty()) {
      json["store_problem"] = state.stored->problem;
      json["kept_problem"] = state.stored->problem;
    }
  }
  if (state.guard) json["guard"] = described(*state.guard);
  json["instance"] = state.instance;
  json["sets"] = std::move(list);
  return dump(json);
}

std::string replicas_document(const scheduling::ModelSignature& model, std::span<const ReplicaInfo> replicas) {
  Json json = of_model(model.name, model.version);
  json["count"] = replicas.size();
  json["replicas"] = Json::array();
  for (const ReplicaInfo& replica : replicas) {
    Json one = {{"replica", replica.index},
                {"device", to_string(replica.device)},
                {"cpus", replica.cpus},
                {"load", replica.load}};
    if (replica.device.type == DeviceType::kCuda) {
      one["graphs"] = replica.graphs;
      one["graph_runs"] = replica.graph_runs;
      if (!replica.no_graphs.empty()) one["no_graphs"] = replica.no_graphs;
      if (!replica.failure.empty()) one["failure"] = replica.failure;
    }
    json["replicas"].push_back(std::move(one));
  }
  return dump(json);
}

std::string operation_document(const Operation& operation) {
  std::string text;
  append_operation(text, operation);
  return text;
}

std::string operations_document(std::span<const std::shared_ptr<Operation>> operations) {
  std::string text = "{\"operations\":[";
  for (const auto& operation : operations) {
    if (text.back() != '[') text += ',';
    append_operation(text, *operation);
  }
  return text + "]}";
}

std::string accepted_document(const Operation& operation) {
  return "{\"operation\":\"" + std::to_string(operation.id) + "\"}";
}

}  // namespace sconce::server::rollout
