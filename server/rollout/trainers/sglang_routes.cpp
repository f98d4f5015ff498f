// SGLang's routes.
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "server/rollout/trainer_tensors/shared_tensors.h"
#include "server/rollout/trainer_tensors/torch_pickles.h"
#include "server/rollout/trainers/model_folder.h"
#include "server/rollout/trainers/trainer_requests.h"
#include "server/rollout/trainers/trainer_routes.h"
#include "server/support/failure.h"
#include "server/support/json_document.h"
#include "server/support/log.h"
#include "src/support/excerpt.h"
#include "src/support/hex.h"
#include "src/support/parse_number.h"
#include "src/support/sha256.h"

namespace sconce::server::rollout {
namespace trainer {
namespace {

bool flag_or_null(JsonCursor& json, std::string_view what) { return !json.consume_null() && json.boolean(what); }

// SGLang's answers.

struct Told {
  std::string message;
  std::vector<std::pair<const char*, OrderedJson>> more = {};
};
using TrainerWork = Told(Rollout& rollout, const AdminRequest& request);

std::string document(bool success, const Told& told) {
  OrderedJson json{{"success", success}, {"message", told.message}};
  for (const auto& [key, value] : told.more) json[key] = value;
  return dump(json);
}

// SGLang and vLLM answer every invalid request with 400.
int status_of(const Failure& failure) {
  if (failure.code == ErrorCode::kNotFound || failure.code == ErrorCode::kUnsupported) return 400;
  return failure.status;
}

void start(Rollout& rollout, AdminRequest request, AdminDone done, TrainerWork& work) {
  const auto failed = [done](const std::exception_ptr& problem) {
    const Failure failure = describe_failure(problem);
    done({status_of(failure), document(false, {failure.message, {{"error", failure.message}}})});
  };
  const auto abandoned = [done] { done({507, {}}); };
  rollout.admin_threads.run(
      [&rollout, &work, request = std::move(request), done] {
        const LogRequest log_request(request.id, request.peer);
        const AuditRequest audit_request(request);
        const Told told = work(rollout, request);
        done({200, document(true, told)});
      },
      failed, abandoned);
}

std::string published(uint64_t weight_version) { return "published weight version " + std::to_string(weight_version); }

// Reads a member that both bodies may have. Returns false for another member.
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

// All shards of the folder are published together, as one update.
Told from_disk(Rollout& rollout, const AdminRequest& request) {
  refuse_unsigned(rollout);
  const http::Query query = query_of(request);
  std::string path, version, format;
  read_body(request, [&](JsonCursor& json, std::string_view key) {
    if (key != "model_path") return read_common(json, key, format, version);
    path = json.string("'model_path'");
    return true;
  });
  SCONCE_CHECK(!path.empty(), kInvalidArgument, "'model_path' must be given");
  SCONCE_CHECK(format.empty() || format == "auto" || format == "safetensors", kInvalidArgument,
               "'load_format' must be null, auto or safetensors, got '", excerpt(format), "'");
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, query);
  ModelFolder folder(rollout.config.weights_dir, path);
  TrainerUpdate update(rollout, served, options_of(query, true));
  update.add(folder.weights(), excerpt(path));
  return {published(update.publish(version)), {{"num_paused_requests", 0}}};
}

Told from_tensor(Rollout& rollout, const AdminRequest& request) {
  refuse_unsigned(rollout);
  const http::Query query = query_of(request);
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
  TrainerTensors described = tensors_of(rollout);
  const TrainerMemoryRelease release(described);
  flat ? read_flat_bucket(pickles.front(), described) : read_named_tensors(pickles.front(), described);
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, query);
  const SharedTensors shared(described);
  if (rollout.trainer_sessions.has(*served)) {
    rollout.trainer_sessions.add(rollout, served, shared, version);
    return {"weights staged: continue_generation publishes them together with the others"};
  }
  TrainerUpdate update(rollout, served, options_of(query, false));
  update.add(shared.tensors(), shared.opening());
  return {published(update.publish(version))};
}

// A new name makes a new weight version of the same set, so that the version in an answer identifies the name.
Told new_version(Rollout& rollout, const AdminRequest& request) {
  const http::Query query = query_of(request);
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
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, query);
  UpdateOptions options;
  options.full = false;
  TrainerUpdate update(rollout, served, options);
  update.add(std::span<const NamedTensor>(), {});
  return {"Weight version updated to " + version + ": " + published(update.publish(version)),
          {{"new_version", version}}};
}

Told paused(Rollout& rollout, const AdminRequest& request) {
  const http::Query query = query_of(request);
  check_body(request);
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, query);
  rollout.trainer_sessions.begin(rollout, served, options_of(query, false), false);
  return {std::string(kNotPaused) + ". Tensors that come before continue_generation are published by it, together",
          {{"status", "ok"}}};
}

Told continued(Rollout& rollout, const AdminRequest& request) {
  const http::Query query = query_of(request);
  check_body(request);
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, query);
  uint64_t weight_version = 0;
  if (rollout.trainer_sessions.has(*served)) weight_version = rollout.trainer_sessions.finish(*served, {});
  return {weight_version != 0 ? published(weight_version) : "nothing was paused, and no tensors wait to be published",
          {{"status", "ok"}}};
}

// Unlike between pause and continue, a busy model is refused at once.
Told begun(Rollout& rollout, const AdminRequest& request) {
  refuse_unsigned(rollout);
  const http::Query query = query_of(request);
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
  rollout.trainer_sessions.begin(rollout, model_of(rollout, query), options_of(query, false), true, version);
  return {"an update was begun: end_weight_update publishes its tensors together"};
}

Told ended(Rollout& rollout, const AdminRequest& request) {
  const http::Query query = query_of(request);
  check_body(request);
  const uint64_t weight_version = rollout.trainer_sessions.finish(*model_of(rollout, query), {});
  return {weight_version != 0 ? published(weight_version) : "no tensors came, and nothing was published"};
}

// The result for one rank, in SGLang's format: it combines the checksums of all tensors of the rank. This server is one
// rank.
OrderedJson ranks_of(const WeightChecker::Checksums& checksums, std::string& of_all) {
  Sha256 digest;
  OrderedJson tensors = OrderedJson::object();
  for (const auto& [name, checksum] : checksums) {
    digest.update(std::as_bytes(std::span(name)));
    digest.update(std::as_bytes(std::span(checksum)));
    tensors[name] = checksum;
  }
  const std::string of_rank = to_hex(digest.finish());
  of_all = to_hex(sha256_of(of_rank));
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

Told summed(Rollout& rollout, const AdminRequest& request) {
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, query_of(request));
  const std::string action = action_of(request);
  SCONCE_CHECK(action == "checksum", kInvalidArgument, "a GET does the action 'checksum' alone, got '", excerpt(action),
               "'");
  std::string of_all;
  OrderedJson ranks = ranks_of(WeightChecker::checksums_of(*served, check_of(rollout)), of_all);
  return {"SHA-256 of each tensor", {{"ranks", std::move(ranks)}, {"per_engine_checksum", of_all}}};
}

Told checked(Rollout& rollout, const AdminRequest& request) {
  const http::Query query = query_of(request);
  const std::string action = action_of(request);
  SCONCE_CHECK(
      action != "reset_tensors", kUnsupported,
      "served weights are not overwritten: an update with ?mode=full is refused unless it has every parameter");
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, query);
  if (action == "snapshot") {
    rollout.weight_checker.snapshot(*served, check_of(rollout));
    return {"the checksums of all tensors are remembered"};
  }
  if (action == "compare") {
    rollout.weight_checker.compare(*served, check_of(rollout));
    return {"all tensors are those of the snapshot"};
  }
  SCONCE_CHECK(action == "checksum", kInvalidArgument, "'action' must be checksum, snapshot or compare, got '",
               excerpt(action), "'");
  return summed(rollout, request);
}

Told flushed(Rollout&, const AdminRequest&) {
  return {"there is no cache: no data of one weight set is used with another"};
}

Told transport(Rollout&, const AdminRequest&) {
  SCONCE_FAIL(kUnsupported,
              "this server takes no part in NCCL groups and opens no ZeroMQ sockets: push by "
              "update_weights_from_tensor (CUDA IPC), by "
              "update_weights_from_disk, or as a safetensors stream");
}

}  // namespace
}  // namespace trainer

namespace admin {

void update_from_disk(Rollout& rollout, AdminRequest request, AdminDone done) {
  trainer::start(rollout, std::move(request), std::move(done), trainer::from_disk);
}
void update_from_tensor(Rollout& rollout, AdminRequest request, AdminDone done) {
  trainer::start(rollout, std::move(request), std::move(done), trainer::from_tensor);
}
void update_version(Rollout& rollout, AdminRequest request, AdminDone done) {
  trainer::start(rollout, std::move(request), std::move(done), trainer::new_version);
}
void pause_generation(Rollout& rollout, AdminRequest request, AdminDone done) {
  trainer::start(rollout, std::move(request), std::move(done), trainer::paused);
}
void continue_generation(Rollout& rollout, AdminRequest request, AdminDone done) {
  trainer::start(rollout, std::move(request), std::move(done), trainer::continued);
}
void begin_update(Rollout& rollout, AdminRequest request, AdminDone done) {
  trainer::start(rollout, std::move(request), std::move(done), trainer::begun);
}
void end_update(Rollout& rollout, AdminRequest request, AdminDone done) {
  trainer::start(rollout, std::move(request), std::move(done), trainer::ended);
}
void weight_checksums(Rollout& rollout, AdminRequest request, AdminDone done) {
  trainer::start(rollout, std::move(request), std::move(done), trainer::summed);
}
void check_weights(Rollout& rollout, AdminRequest request, AdminDone done) {
  trainer::start(rollout, std::move(request), std::move(done), trainer::checked);
}
void flush_cache(Rollout& rollout, AdminRequest request, AdminDone done) {
  trainer::start(rollout, std::move(request), std::move(done), trainer::flushed);
}
void no_transport(Rollout& rollout, AdminRequest request, AdminDone done) {
  trainer::start(rollout, std::move(request), std::move(done), trainer::transport);
}

std::string weight_version(Rollout& rollout, const AdminRequest& request) {
  trainer::check_body(request);
  return dump(OrderedJson{
      {"weight_version", trainer::active_version(*trainer::model_of(rollout, trainer::query_of(request)))}});
}

std::string model_info(Rollout& rollout, const AdminRequest& request) {
  const std::shared_ptr<registry::ServedModel> served = trainer::model_of(rollout, trainer::query_of(request));
  const std::string& name = served->interface().name;
  return dump(OrderedJson{
      {"model_path", name}, {"served_model_name", name}, {"weight_version", trainer::active_version(*served)}});
}

std::string weights_by_name(Rollout& rollout, const AdminRequest& request) {
  const http::Query query = trainer::query_of(request);
  std::string name(query.text("name").value_or(""));
  uint64_t rows = 100;
  if (const auto given = query.text("truncate_size")) {
    const auto number = parse_number<uint64_t>(*given);
    SCONCE_CHECK(number, kInvalidArgument, "query parameter 'truncate_size' must be a number");
    rows = *number;
  }
  trainer::read_body(request, [&](JsonCursor& json, std::string_view key) {
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
  return first_rows(*trainer::model_of(rollout, query), name, rows);
}

}  // namespace admin
}  // namespace sconce::server::rollout
