#include "server/admin_documents.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace sconce {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json of_model(const std::string& name, int64_t version) {
  return {{"model", name}, {"version", std::to_string(version)}};
}

const char* type_name(ConstantType type) noexcept {
  switch (type) {
    case ConstantType::kParameter:
      return "parameter";
    case ConstantType::kBuffer:
      return "buffer";
    case ConstantType::kTensorConstant:
      return "tensor_constant";
    case ConstantType::kFolded:
      return "folded";
    case ConstantType::kUnknown:
      break;
  }
  return "unknown";
}

const char* state_name(WeightState state) noexcept {
  switch (state) {
    case WeightState::kStaged:
      return "staged";
    case WeightState::kPrevious:
      return "previous";
    case WeightState::kActive:
      break;
  }
  return "active";
}

const char* state_name(Operation::State state) noexcept {
  switch (state) {
    case Operation::State::kRunning:
      return "running";
    case Operation::State::kFailed:
      return "failed";
    case Operation::State::kCancelled:
      return "cancelled";
    case Operation::State::kDone:
      break;
  }
  return "done";
}

const char* phase_name(Operation::Phase phase) noexcept {
  switch (phase) {
    case Operation::Phase::kStarting:
      return "starting";
    case Operation::Phase::kReceiving:
      return "receiving";
    case Operation::Phase::kFolding:
      return "folding";
    case Operation::Phase::kCommitting:
      return "committing";
    case Operation::Phase::kOver:
      break;
  }
  return "over";
}

const char* outcome_name(Operation::Outcome outcome) noexcept {
  switch (outcome) {
    case Operation::Outcome::kChecked:
      return "checked";
    case Operation::Outcome::kStaged:
      return "staged";
    case Operation::Outcome::kActive:
      return "active";
    case Operation::Outcome::kNone:
      break;
  }
  return "none";
}

std::string time_text(std::chrono::system_clock::time_point time) {
  const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(time);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     (milliseconds - seconds).count());
}

std::string weight_version(uint64_t generation, const std::string& label) {
  return label.empty() ? std::to_string(generation) : label;
}

Json operation_json(const Operation& operation) {
  const Operation::View view = operation.view();
  Json json = {{"operation", std::to_string(operation.id)}};
  json.update(of_model(operation.model, operation.version));
  json["label"] = operation.label;
  json["state"] = state_name(view.state);
  json["phase"] = phase_name(view.phase);
  json["bytes"] = view.bytes;
  json["total_bytes"] = view.total;
  json["seconds"] = view.seconds;
  const bool failed = view.state == Operation::State::kFailed || view.state == Operation::State::kCancelled;
  if (view.state == Operation::State::kDone) json["result"] = outcome_name(view.outcome);
  if (view.generation != 0) json["generation"] = view.generation;
  if (failed) {
    json["status"] = view.status;
    json["error"] = view.error;
  }
  json["replicas"] = Json::array();
  for (const ReplicaInfo& replica : operation.replicas) {
    const char* const state = view.state == Operation::State::kDone ? outcome_name(view.outcome)
                              : failed                              ? "unchanged"
                                                                    : phase_name(view.phase);
    json["replicas"].push_back({{"replica", replica.index}, {"device", to_string(replica.device)}, {"state", state}});
  }
  return json;
}

}  // namespace

std::string constants_document(const ModelInterface& model, std::span<const ConstantSpec> constants) {
  Json json = of_model(model.name, model.version);
  json["constants"] = Json::array();
  for (const ConstantSpec& c : constants) {
    Json one = {{"name", c.fqn.empty() ? c.name : c.fqn}, {"internal_name", c.name}};
    one["dtype"] = c.dtype ? Json(dtype_name(*c.dtype)) : Json(nullptr);
    one["shape"] = c.shape;
    one["strides"] = c.strides;
    one["bytes"] = c.data_size;
    one["type"] = type_name(c.type);
    one["device"] = c.device ? Json(to_string(*c.device)) : Json(nullptr);
    one["folded"] = c.folded;
    one["mutated"] = c.mutated;
    one["opaque"] = c.opaque;
    json["constants"].push_back(std::move(one));
  }
  return dump(json);
}

std::string weights_document(const ModelInterface& model, std::span<const WeightSetInfo> sets,
                             std::span<const std::string> digests) {
  Json json = of_model(model.name, model.version);
  Json list = Json::array();
  for (size_t i = 0; i < sets.size(); ++i) {
    const WeightSetInfo& set = sets[i];
    if (set.state == WeightState::kActive) {
      json["generation"] = set.generation;
      json["weight_version"] = weight_version(set.generation, set.label);
    }
    Json one = {{"state", state_name(set.state)}};
    one["generation"] = set.generation != 0 ? Json(set.generation) : Json(nullptr);
    one["label"] = set.label;
    one["bytes"] = set.bytes;
    one["own_bytes"] = set.own_bytes;
    one["since"] = time_text(set.since);
    if (!digests.empty()) one["digest"] = digests[i];
    list.push_back(std::move(one));
  }
  json["sets"] = std::move(list);
  return dump(json);
}

std::string replicas_document(const ModelInterface& model, std::span<const ReplicaInfo> replicas) {
  Json json = of_model(model.name, model.version);
  json["count"] = replicas.size();
  json["replicas"] = Json::array();
  for (const ReplicaInfo& replica : replicas) {
    json["replicas"].push_back({{"replica", replica.index},
                                {"device", to_string(replica.device)},
                                {"cpus", replica.cpus},
                                {"load", replica.load}});
  }
  return dump(json);
}

std::string operation_document(const Operation& operation) { return dump(operation_json(operation)); }

std::string operations_document(std::span<const std::shared_ptr<Operation>> operations) {
  Json json = {{"operations", Json::array()}};
  for (const auto& operation : operations) json["operations"].push_back(operation_json(*operation));
  return dump(json);
}

std::string accepted_document(const Operation& operation) {
  return dump({{"operation", std::to_string(operation.id)}});
}

}  // namespace sconce
