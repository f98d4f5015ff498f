// vLLM's routes.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "server/rollout/trainer_tensors/shared_tensors.h"
#include "server/rollout/trainer_tensors/torch_pickles.h"
#include "server/rollout/trainers/trainer_requests.h"
#include "server/rollout/trainers/trainer_routes.h"
#include "server/support/json_document.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace trainer {
namespace {

std::string message(const char* text) { return dump(OrderedJson{{"message", text}}); }

// Reads the value of `key` in the body of init_weight_transfer_engine and update_weights: an object, or a list with one
// entry per worker, null for workers without one. Returns false if the entry for this server, which is one worker, is
// null.
template <class F>
bool read_info(const AdminRequest& request, std::string_view key, F&& member) {
  bool given = false, any = false;
  read_body(request, [&](JsonCursor& json, std::string_view name) {
    if (name != key || json.peek() == 'n') return false;
    const auto read = [&] {
      any = true;
      json.object(key, [&](std::string_view inner) {
        if (!member(json, inner)) json.skip();
      });
    };
    if (json.peek() != '[') {
      read();
      return given = true;
    }
    json.array(key, [&](size_t index) {
      SCONCE_CHECK(index == 0, kInvalidArgument, "'", key,
                   "' must have one element, because this server is one worker; got several");
      given = true;
      if (!json.consume_null()) read();
    });
    return true;
  });
  SCONCE_CHECK(given, kInvalidArgument, "Missing '", key, "' in request body");
  return any;
}

}  // namespace
}  // namespace trainer

namespace admin {

std::string pause(Rollout& rollout, const AdminRequest& request) {
  trainer::model_of(rollout, trainer::query_of(request));
  return dump(OrderedJson{{"status", "not paused"}, {"message", trainer::kNotPaused}});
}

std::string resume(Rollout& rollout, const AdminRequest& request) {
  trainer::model_of(rollout, trainer::query_of(request));
  return dump(OrderedJson{{"status", "resumed"}, {"message", trainer::kNotPaused}});
}

std::string is_paused(Rollout& rollout, const AdminRequest& request) {
  trainer::model_of(rollout, trainer::query_of(request));
  return dump(OrderedJson{{"is_paused", false}});
}

std::string init_transfer(Rollout& rollout, const AdminRequest& request) {
  trainer::model_of(rollout, trainer::query_of(request));
  trainer::read_info(request, "init_info", [](JsonCursor&, std::string_view key) {
    SCONCE_CHECK(key != "master_address" && key != "master_port", kUnsupported,
                 "this server takes no part in NCCL groups: use the transport ipc");
    return false;
  });
  return trainer::message("Weight transfer initialized");
}

std::string start_update(Rollout& rollout, const AdminRequest& request) {
  trainer::refuse_unsigned(rollout);
  const http::Query query = trainer::query_of(request);
  trainer::check_body(request);
  rollout.trainer_sessions.begin(rollout, trainer::model_of(rollout, query), trainer::options_of(query, false), true);
  return trainer::message("Weight update started");
}

std::string update_weights(Rollout& rollout, const AdminRequest& request) {
  trainer::refuse_unsigned(rollout);
  const http::Query query = trainer::query_of(request);
  NamedHandles named;
  std::optional<std::string> pickle;
  const bool any = trainer::read_info(request, "update_info", [&](JsonCursor& json, std::string_view key) {
    if (key == "names") {
      json.array("'names'", [&](size_t) { named.names.emplace_back(json.string("a name")); });
    } else if (key == "dtype_names") {
      json.array("'dtype_names'", [&](size_t) { named.dtypes.emplace_back(json.string("a dtype's name")); });
    } else if (key == "shapes") {
      json.array("'shapes'", [&](size_t) {
        std::vector<int64_t>& shape = named.shapes.emplace_back();
        json.array("a shape", [&](size_t) {
          shape.push_back(static_cast<int64_t>(std::min<uint64_t>(json.unsigned_integer("a size"), INT64_MAX)));
        });
      });
    } else if (key == "tensor_sizes") {
      if (json.consume_null()) return true;
      json.array("'tensor_sizes'", [&](size_t) {
        named.bytes.push_back(static_cast<int64_t>(std::min<uint64_t>(json.unsigned_integer("a size"), INT64_MAX)));
      });
    } else if (key == "ipc_handles_pickled") {
      if (!json.consume_null())
        pickle = trainer::decoded(json.string("'ipc_handles_pickled'"), "'ipc_handles_pickled'");
    } else if (key == "ipc_handles") {
      SCONCE_CHECK(json.consume_null(), kInvalidArgument,
                   "'ipc_handles' hold functions, which JSON cannot: send 'ipc_handles_pickled', or POST "
                   ".../weights with \"tensors\"");
    } else {
      return false;
    }
    return true;
  });
  if (!any) {
    SCONCE_CHECK(rollout.trainer_sessions.has(*trainer::model_of(rollout, query)), kFailedPrecondition,
                 "no update of the model was begun");
    return trainer::message("Weights updated");
  }
  SCONCE_CHECK(pickle, kUnsupported,
               "'ipc_handles_pickled' must be given: tensors come by CUDA IPC, not by NCCL or another transport");
  TrainerTensors described = trainer::tensors_of(rollout);
  const TrainerMemoryRelease release(described);
  read_ipc_handles(*pickle, named, visible_uuids(), described);
  const std::shared_ptr<registry::ServedModel> served = trainer::model_of(rollout, query);
  const SharedTensors shared(described);
  rollout.trainer_sessions.add(rollout, served, shared, {});
  return trainer::message("Weights updated");
}

std::string finish_update(Rollout& rollout, const AdminRequest& request) {
  const http::Query query = trainer::query_of(request);
  std::string version;
  trainer::read_body(request, [&](JsonCursor& json, std::string_view key) {
    if (key != "weight_version") return false;
    version = trainer::text_or_null(json, "'weight_version'");
    return true;
  });
  const uint64_t weight_version = rollout.trainer_sessions.finish(*trainer::model_of(rollout, query), version);
  return dump(OrderedJson{{"message", "Weight update finished"}, {"generation", weight_version}});
}

std::string shutdown_transfer(Rollout& rollout, const AdminRequest& request) {
  const http::Query query = trainer::query_of(request);
  trainer::check_body(request);
  rollout.trainer_sessions.drop(*trainer::model_of(rollout, query), "the trainer shut its weight transfer down");
  return trainer::message("Weight transfer engine shut down");
}

std::string weight_info(Rollout& rollout, const AdminRequest& request) { return weight_version(rollout, request); }

std::string world_size(Rollout& rollout, const AdminRequest& request) {
  trainer::model_of(rollout, trainer::query_of(request));
  return dump(OrderedJson{{"world_size", 1}});
}

// Requests are not aborted: each one finishes with its initial weights.
std::string abort_requests(Rollout& rollout, const AdminRequest& request) {
  trainer::check_body(request);
  trainer::model_of(rollout, trainer::query_of(request));
  return dump(OrderedJson{{"status", "not aborted"}, {"aborted", 0}, {"message", trainer::kNotPaused}});
}

std::string start_draft_update(Rollout&, const AdminRequest&) {
  SCONCE_FAIL(kInvalidArgument, "this server has no draft model");
}

std::string compare_checksums(Rollout& rollout, const AdminRequest& request) {
  const http::Query query = trainer::query_of(request);
  std::string action;
  std::optional<WeightChecker::Checksums> baseline;
  trainer::read_body(request, [&](JsonCursor& json, std::string_view key) {
    if (key == "action") {
      action = json.string("'action'");
    } else if (key == "baseline") {
      if (json.consume_null()) return true;
      json.object("'baseline'", [&baseline = baseline.emplace(), &json](std::string_view name) {
        std::string& checksum = baseline[std::string(name)];
        checksum = json.string("a checksum");
      });
    } else {
      return false;
    }
    return true;
  });
  SCONCE_CHECK(
      action != "reset", kUnsupported,
      "served weights are not overwritten: an update with ?mode=full is refused unless it has every parameter");
  SCONCE_CHECK(action == "checksum" || action == "compare", kInvalidArgument,
               "'action' must be checksum or compare, got '", excerpt(action), "'");
  SCONCE_CHECK(action == "checksum" || baseline, kInvalidArgument, "action 'compare' needs 'baseline'");
  const auto served = trainer::model_of(rollout, query);
  const WeightChecker::Checksums now = WeightChecker::checksums_of(*served, trainer::check_of(rollout));
  if (action == "checksum") return dump(OrderedJson{{"checksums", now}});
  const std::vector<std::string> mismatches = WeightChecker::differing(*baseline, now);
  return dump(OrderedJson{{"match", mismatches.empty()}, {"mismatches", mismatches}});
}

}  // namespace admin
}  // namespace sconce::server::rollout
