#include "server/admin/trainers/trainer_routes.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "sconce/error_context.h"
#include "sconce/excerpt.h"
#include "sconce/parse_number.h"
#include "server/admin/admin_documents.h"
#include "server/admin/trainer_sessions.h"
#include "server/admin/trainers/model_folder.h"
#include "server/admin/work/update_query.h"
#include "server/base/failure.h"
#include "server/base/json_cursor.h"
#include "server/base/json_document.h"
#include "server/base/log.h"
#include "server/http/query.h"
#include "server/json/base64.h"
#include "server/remote/file_digest.h"
#include "server/trainers/shared_tensors.h"
#include "server/trainers/torch_pickles.h"

namespace sconce::server {
namespace {

constexpr const char* kNotPaused =
    "nothing is paused: requests go on, and each is answered by one complete set of weights";

// The query parameters of all these routes.
Query query_of(const AdminRequest& request) {
  return Query(request.query, {"model", "mode", "ignore", "wait_for_inflight_requests", "clear_cache", "include_dp",
                               "timeout", "name", "truncate_size"});
}

// The model that ?model=NAME means, else the only one.
std::shared_ptr<ServedModel> model_of(Service& service, const Query& query) {
  const std::shared_ptr<const Catalog> catalog = service.repository.snapshot();
  if (const auto name = query.text("model")) return catalog->loaded(*name, {});
  const std::vector<Catalog::Entry>& entries = catalog->entries();
  SCONCE_CHECK(!entries.empty(), kUnavailable, "no model is served");
  if (entries.size() == 1) return catalog->loaded(entries.front().name, {});
  std::string names;
  for (const Catalog::Entry& entry : entries) names += (names.empty() ? "" : ", ") + entry.name;
  SCONCE_FAIL(kInvalidArgument, "several models are served: say which by ?model=NAME: ", excerpt(names));
}

UpdateOptions options_of(const Query& query, bool full) {
  UpdateOptions options;
  read_update_query(query, full, options);
  return options;
}

std::string active_version(const ServedModel& served) {
  const WeightSetInfo active = served.model().weight_sets().front();
  return weight_version(active.generation, active.label);
}

// Members that a handler does not know are ignored, as these servers do.
template <class F>
void read_body(const AdminRequest& request, F&& member) {
  if (request.body.empty()) return;
  JsonCursor::read_request(request.body, [&](JsonCursor& json, std::string_view key) {
    if (!member(json, key)) json.skip();
  });
}
void check_body(const AdminRequest& request) {
  read_body(request, [](JsonCursor&, std::string_view) { return false; });
}

// A text, or null: empty.
std::string text_or_null(JsonCursor& json, std::string_view what) {
  return json.consume_null() ? std::string() : std::string(json.string(what));
}
bool flag_or_null(JsonCursor& json, std::string_view what) { return !json.consume_null() && json.boolean(what); }

std::string decoded(std::string_view text, const char* what) {
  std::optional<std::string> bytes = decode_base64(text);
  SCONCE_CHECK(bytes, kInvalidArgument, what, " is not base64");
  return std::move(*bytes);
}

// SGLang's answers.

struct Told {
  std::string message;
  std::vector<std::pair<const char*, OrderedJson>> more = {};
};
using TrainerWork = Told(Service& service, const AdminRequest& request);

std::string document(bool success, const Told& told) {
  OrderedJson json{{"success", success}, {"message", told.message}};
  for (const auto& [key, value] : told.more) json[key] = value;
  return dump(json);
}

// SGLang and vLLM answer every mistake in a request with 400.
int status_of(const Failure& failure) {
  if (failure.code == ErrorCode::kNotFound || failure.code == ErrorCode::kUnsupported) return 400;
  return failure.status;
}

void start(Service& service, AdminRequest request, AdminDone done, TrainerWork& work) {
  const auto failed = [done](const std::exception_ptr& problem) {
    const Failure failure = describe_failure(problem);
    done({status_of(failure), document(false, {failure.message, {{"error", failure.message}}})});
  };
  const auto abandoned = [done] { done({507, {}}); };
  service.admin_threads.run(
      [&service, &work, request = std::move(request), done] {
        const LogRequest log_request(request.id, request.peer);
        const AuditRequest audit_request(request);
        const Told told = work(service, request);
        done({200, document(true, told)});
      },
      failed, abandoned);
}

std::string published(uint64_t generation) { return "weights published: generation " + std::to_string(generation); }

// The members that both bodies may have. False for another one.
bool read_common(JsonCursor& json, std::string_view key, std::string& format, std::string& version) {
  if (key == "load_format") {
    format = text_or_null(json, "'load_format'");
  } else if (key == "weight_version") {
    version = text_or_null(json, "'weight_version'");
  } else if (key == "flush_cache" || key == "abort_all_requests") {
    flag_or_null(json, key == "flush_cache" ? "'flush_cache'" : "'abort_all_requests'");
  } else {
    return false;
  }
  return true;
}

// What takes long ends when the server does.
std::function<void()> check_of(const Service& service) {
  return [&service] { SCONCE_CHECK(!service.draining, kUnavailable, "the server is shutting down"); };
}

TrainerTensors tensors_of(const Service& service) {
  TrainerTensors tensors;
  tensors.left.check = check_of(service);
  return tensors;
}

// A trainer's tensors, and its files, come without signatures.
void refuse_unsigned(const Service& service) {
  if (service.signatures) service.signatures->refuse_unsigned("weights that a trainer brings");
}

// All shards of the folder are published together, as one update.
Told from_disk(Service& service, const AdminRequest& request) {
  refuse_unsigned(service);
  const Query query = query_of(request);
  std::string path, version, format;
  read_body(request, [&](JsonCursor& json, std::string_view key) {
    if (key != "model_path") return read_common(json, key, format, version);
    path = json.string("'model_path'");
    return true;
  });
  SCONCE_CHECK(!path.empty(), kInvalidArgument, "'model_path' must be given");
  SCONCE_CHECK(format.empty() || format == "auto" || format == "safetensors", kInvalidArgument,
               "'load_format' must be null, auto or safetensors, got '", excerpt(format), "'");
  const std::shared_ptr<ServedModel> served = model_of(service, query);
  ModelFolder folder(service.config.weights_dir, path);
  TrainerUpdate update(service, served, options_of(query, true));
  update.add(folder.weights(), excerpt(path));
  return {published(update.publish(version)), {{"num_paused_requests", 0}}};
}

Told from_tensor(Service& service, const AdminRequest& request) {
  refuse_unsigned(service);
  const Query query = query_of(request);
  std::vector<std::string> pickles;
  std::string version, format;
  read_body(request, [&](JsonCursor& json, std::string_view key) {
    if (key != "serialized_named_tensors") return read_common(json, key, format, version);
    json.array("'serialized_named_tensors'", [&](size_t) {
      const std::string_view text = json.string("an element of 'serialized_named_tensors'");
      if (pickles.size() < 2) pickles.push_back(decoded(text, "an element of 'serialized_named_tensors'"));
    });
    return true;
  });
  SCONCE_CHECK(pickles.size() == 1, kInvalidArgument,
               "'serialized_named_tensors' must have one element, because this server is one rank; got ",
               pickles.empty() ? "none" : "several");
  const bool flat = format == "flattened_bucket";
  SCONCE_CHECK(flat || format.empty() || format == "direct", kInvalidArgument,
               "'load_format' must be null, direct or flattened_bucket, got '", excerpt(format), "'");
  TrainerTensors described = tensors_of(service);
  const TrainerMemoryRelease release(described);
  flat ? read_flat_bucket(pickles.front(), described) : read_named_tensors(pickles.front(), described);
  const std::shared_ptr<ServedModel> served = model_of(service, query);
  const SharedTensors shared(described);
  if (service.trainer_sessions.has(*served)) {
    service.trainer_sessions.add(service, served, shared, version);
    return {"weights staged: continue_generation publishes them together with the others"};
  }
  TrainerUpdate update(service, served, options_of(query, false));
  update.add(shared.tensors(), shared.opening());
  return {published(update.publish(version))};
}

// A new name makes a new generation of the same set, so that the generation in an answer tells the name.
Told new_version(Service& service, const AdminRequest& request) {
  const Query query = query_of(request);
  std::string version;
  read_body(request, [&](JsonCursor& json, std::string_view key) {
    if (key == "new_version") {
      version = json.string("'new_version'");
    } else if (key == "abort_all_requests") {
      flag_or_null(json, "'abort_all_requests'");
    } else {
      return false;
    }
    return true;
  });
  SCONCE_CHECK(!version.empty(), kInvalidArgument, "'new_version' must be given and not empty");
  const std::shared_ptr<ServedModel> served = model_of(service, query);
  UpdateOptions options;
  options.full = false;
  TrainerUpdate update(service, served, options);
  update.add(std::span<const NamedTensor>(), {});
  return {"Weight version updated to " + version + ": " + published(update.publish(version)),
          {{"new_version", version}}};
}

Told paused(Service& service, const AdminRequest& request) {
  const Query query = query_of(request);
  check_body(request);
  const std::shared_ptr<ServedModel> served = model_of(service, query);
  service.trainer_sessions.begin(service, served, options_of(query, false), false);
  return {std::string(kNotPaused) + ". Tensors that come before continue_generation are published by it, together",
          {{"status", "ok"}}};
}

Told continued(Service& service, const AdminRequest& request) {
  const Query query = query_of(request);
  check_body(request);
  const std::shared_ptr<ServedModel> served = model_of(service, query);
  uint64_t generation = 0;
  if (service.trainer_sessions.has(*served)) generation = service.trainer_sessions.finish(*served, {});
  return {generation != 0 ? published(generation) : "nothing was paused, and no tensors wait to be published",
          {{"status", "ok"}}};
}

// Unlike between pause and continue, a busy model is refused at once.
Told begun(Service& service, const AdminRequest& request) {
  refuse_unsigned(service);
  const Query query = query_of(request);
  std::string version;
  read_body(request, [&](JsonCursor& json, std::string_view key) {
    if (key == "selector") {
      const std::string selector = text_or_null(json, "'selector'");
      SCONCE_CHECK(selector.empty() || selector == "all" || selector == "target", kUnsupported,
                   "'selector' must be all or target, because this server has no draft model; got '", excerpt(selector),
                   "'");
      return true;
    }
    if (key != "weight_version") return false;
    version = text_or_null(json, "'weight_version'");
    return true;
  });
  service.trainer_sessions.begin(service, model_of(service, query), options_of(query, false), true, version);
  return {"an update was begun: end_weight_update publishes its tensors together"};
}

Told ended(Service& service, const AdminRequest& request) {
  const Query query = query_of(request);
  check_body(request);
  const uint64_t generation = service.trainer_sessions.finish(*model_of(service, query), {});
  return {generation != 0 ? published(generation) : "no tensors came, and nothing was published"};
}

// As SGLang makes one of those of all tensors, of which a rank has its own; this server is one rank.
OrderedJson ranks_of(const WeightChecker::Checksums& checksums, std::string& of_all) {
  FileDigest digest;
  OrderedJson tensors = OrderedJson::object();
  for (const auto& [name, checksum] : checksums) {
    digest.update(std::as_bytes(std::span(name)));
    digest.update(std::as_bytes(std::span(checksum)));
    tensors[name] = checksum;
  }
  const std::string of_rank = hex_of(digest.finish());
  of_all = hex_of(digest_of_text(of_rank));
  const OrderedJson place{{"tp_rank", 0}, {"tp_size", 1}, {"dp_rank", 0}, {"dp_size", 1},
                          {"pp_rank", 0}, {"pp_size", 1}, {"rank", 0},    {"size", 1}};
  return OrderedJson::array(
      {OrderedJson{{"checksums", std::move(tensors)}, {"per_gpu_checksum", of_rank}, {"parallelism_info", place}}});
}

std::string action_of(const AdminRequest& request) {
  std::string action = "checksum";
  read_body(request, [&](JsonCursor& json, std::string_view key) {
    if (key != "action") return false;
    action = json.string("'action'");
    return true;
  });
  return action;
}

Told summed(Service& service, const AdminRequest& request) {
  const std::shared_ptr<ServedModel> served = model_of(service, query_of(request));
  const std::string action = action_of(request);
  SCONCE_CHECK(action == "checksum", kInvalidArgument, "a GET does the action 'checksum' alone, got '", excerpt(action),
               "'");
  std::string of_all;
  OrderedJson ranks = ranks_of(WeightChecker::checksums_of(*served, check_of(service)), of_all);
  return {"SHA-256 of each tensor", {{"ranks", std::move(ranks)}, {"per_engine_checksum", of_all}}};
}

Told checked(Service& service, const AdminRequest& request) {
  const Query query = query_of(request);
  const std::string action = action_of(request);
  SCONCE_CHECK(
      action != "reset_tensors", kUnsupported,
      "served weights are not overwritten: an update with ?mode=full is refused unless it has every parameter");
  const std::shared_ptr<ServedModel> served = model_of(service, query);
  if (action == "snapshot") {
    service.weight_checker.snapshot(*served, check_of(service));
    return {"the checksums of all tensors are remembered"};
  }
  if (action == "compare") {
    service.weight_checker.compare(*served, check_of(service));
    return {"all tensors are those of the snapshot"};
  }
  SCONCE_CHECK(action == "checksum", kInvalidArgument, "'action' must be checksum, snapshot or compare, got '",
               excerpt(action), "'");
  return summed(service, request);
}

Told flushed(Service&, const AdminRequest&) {
  return {"there is no cache: nothing of one set of weights is used with another"};
}

Told transport(Service&, const AdminRequest&) {
  SCONCE_FAIL(kUnsupported,
              "this server takes no part in NCCL groups and opens no ZeroMQ sockets: push by "
              "update_weights_from_tensor (CUDA IPC), by "
              "update_weights_from_disk, or as a safetensors stream");
}

std::string message(const char* text) { return dump(OrderedJson{{"message", text}}); }

// What init_weight_transfer_engine and update_weights are given, in `key`: an object, or a list with one for each
// worker, null for those that get nothing. Returns false if it is null for this server, which is one worker.
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

namespace admin {

void update_from_disk(Service& service, AdminRequest request, AdminDone done) {
  start(service, std::move(request), std::move(done), from_disk);
}
void update_from_tensor(Service& service, AdminRequest request, AdminDone done) {
  start(service, std::move(request), std::move(done), from_tensor);
}
void update_version(Service& service, AdminRequest request, AdminDone done) {
  start(service, std::move(request), std::move(done), new_version);
}
void pause_generation(Service& service, AdminRequest request, AdminDone done) {
  start(service, std::move(request), std::move(done), paused);
}
void continue_generation(Service& service, AdminRequest request, AdminDone done) {
  start(service, std::move(request), std::move(done), continued);
}
void begin_update(Service& service, AdminRequest request, AdminDone done) {
  start(service, std::move(request), std::move(done), begun);
}
void end_update(Service& service, AdminRequest request, AdminDone done) {
  start(service, std::move(request), std::move(done), ended);
}
void weight_checksums(Service& service, AdminRequest request, AdminDone done) {
  start(service, std::move(request), std::move(done), summed);
}
void check_weights(Service& service, AdminRequest request, AdminDone done) {
  start(service, std::move(request), std::move(done), checked);
}
void flush_cache(Service& service, AdminRequest request, AdminDone done) {
  start(service, std::move(request), std::move(done), flushed);
}
void no_transport(Service& service, AdminRequest request, AdminDone done) {
  start(service, std::move(request), std::move(done), transport);
}

std::string weight_version(Service& service, const AdminRequest& request) {
  check_body(request);
  return dump(OrderedJson{{"weight_version", active_version(*model_of(service, query_of(request)))}});
}

std::string model_info(Service& service, const AdminRequest& request) {
  const std::shared_ptr<ServedModel> served = model_of(service, query_of(request));
  const std::string& name = served->interface().name;
  return dump(
      OrderedJson{{"model_path", name}, {"served_model_name", name}, {"weight_version", active_version(*served)}});
}

std::string weights_by_name(Service& service, const AdminRequest& request) {
  const Query query = query_of(request);
  std::string name(query.text("name").value_or(""));
  uint64_t rows = 100;
  if (const auto given = query.text("truncate_size")) {
    const auto number = parse_number<uint64_t>(*given);
    SCONCE_CHECK(number, kInvalidArgument, "query parameter 'truncate_size' must be a number");
    rows = *number;
  }
  read_body(request, [&](JsonCursor& json, std::string_view key) {
    if (key == "name") {
      name = json.string("'name'");
    } else if (key == "truncate_size") {
      rows = json.unsigned_integer("'truncate_size'");
    } else {
      return false;
    }
    return true;
  });
  SCONCE_CHECK(!name.empty(), kInvalidArgument, "'name' must be given");
  return first_rows(*model_of(service, query), name, rows);
}

std::string pause(Service& service, const AdminRequest& request) {
  model_of(service, query_of(request));
  return dump(OrderedJson{{"status", "not paused"}, {"message", kNotPaused}});
}

std::string resume(Service& service, const AdminRequest& request) {
  model_of(service, query_of(request));
  return dump(OrderedJson{{"status", "resumed"}, {"message", kNotPaused}});
}

std::string is_paused(Service& service, const AdminRequest& request) {
  model_of(service, query_of(request));
  return dump(OrderedJson{{"is_paused", false}});
}

std::string init_transfer(Service& service, const AdminRequest& request) {
  model_of(service, query_of(request));
  read_info(request, "init_info", [](JsonCursor&, std::string_view key) {
    SCONCE_CHECK(key != "master_address" && key != "master_port", kUnsupported,
                 "this server takes no part in NCCL groups: use the transport ipc");
    return false;
  });
  return message("Weight transfer initialized");
}

std::string start_update(Service& service, const AdminRequest& request) {
  refuse_unsigned(service);
  const Query query = query_of(request);
  check_body(request);
  service.trainer_sessions.begin(service, model_of(service, query), options_of(query, false), true);
  return message("Weight update started");
}

std::string update_weights(Service& service, const AdminRequest& request) {
  refuse_unsigned(service);
  const Query query = query_of(request);
  NamedHandles named;
  std::optional<std::string> pickle;
  const bool any = read_info(request, "update_info", [&](JsonCursor& json, std::string_view key) {
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
      if (!json.consume_null()) pickle = decoded(json.string("'ipc_handles_pickled'"), "'ipc_handles_pickled'");
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
    SCONCE_CHECK(service.trainer_sessions.has(*model_of(service, query)), kFailedPrecondition,
                 "no update of the model was begun");
    return message("Weights updated");
  }
  SCONCE_CHECK(pickle, kUnsupported,
               "'ipc_handles_pickled' must be given: tensors come by CUDA IPC, not by NCCL or another transport");
  TrainerTensors described = tensors_of(service);
  const TrainerMemoryRelease release(described);
  read_ipc_handles(*pickle, named, visible_uuids(), described);
  const std::shared_ptr<ServedModel> served = model_of(service, query);
  const SharedTensors shared(described);
  service.trainer_sessions.add(service, served, shared, {});
  return message("Weights updated");
}

std::string finish_update(Service& service, const AdminRequest& request) {
  const Query query = query_of(request);
  std::string version;
  read_body(request, [&](JsonCursor& json, std::string_view key) {
    if (key != "weight_version") return false;
    version = text_or_null(json, "'weight_version'");
    return true;
  });
  const uint64_t generation = service.trainer_sessions.finish(*model_of(service, query), version);
  return dump(OrderedJson{{"message", "Weight update finished"}, {"generation", generation}});
}

std::string shutdown_transfer(Service& service, const AdminRequest& request) {
  const Query query = query_of(request);
  check_body(request);
  service.trainer_sessions.drop(*model_of(service, query), "the trainer shut its weight transfer down");
  return message("Weight transfer engine shut down");
}

std::string weight_info(Service& service, const AdminRequest& request) { return weight_version(service, request); }

std::string world_size(Service& service, const AdminRequest& request) {
  model_of(service, query_of(request));
  return dump(OrderedJson{{"world_size", 1}});
}

}  // namespace admin
}  // namespace sconce::server
