#include "server/rollout/admin_api.h"

#include <boost/beast/core/string.hpp>
#include <optional>

#include "sconce/check.h"
#include "sconce/model.h"
#include "server/http/query.h"
#include "server/registry/documents.h"
#include "server/rollout/admin_documents.h"
#include "server/rollout/publication.h"
#include "server/rollout/push/push_terms.h"
#include "server/rollout/push_api.h"
#include "server/rollout/served_weights.h"
#include "server/rollout/weights_download.h"
#include "server/rollout/weights_job.h"
#include "server/support/cores.h"
#include "server/support/failure.h"
#include "server/support/json_cursor.h"
#include "server/support/log.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server::rollout {
namespace {

constexpr int kMaxReplicas = 1024;

uint64_t number(const std::string& digits) {
  const auto value = parse_number<uint64_t>(digits);
  SCONCE_CHECK(value, kNotFound, "no such number: ", excerpt(digits));
  return *value;
}

// Answers a completed change that stays in force: if memory for its description is short, the answer is {}.
template <class Describe>
std::string told(const Describe& describe) {
  std::string text;
  succeeds([&] { text = describe(); });
  return text;
}

// change: changes the model. done: the change, for the log. noted: notifies the push in progress, if there is one.
template <class Change>
std::string change_weights(Rollout& rollout, const AdminRequest& request, const Change& change, const char* done,
                           void (*noted)(PushLedger&, const PushPlace&, uint64_t weight_version)) {
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  const ModelClaims::Claim claim(rollout.claims, *served, "its weights are being changed");
  const Model& model = served->model();
  change(served);
  if (noted != nullptr) noted(rollout.pushes, place_of(served), model.weight_version());
  log_info("model {} version {}: weights {}, weight version {} is active", served->interface().name,
           served->interface().version, done, model.weight_version());
  return told([&] { return weights_text(rollout, *served, false); });
}

}  // namespace

namespace admin {

std::string constants(Rollout& rollout, const AdminRequest& request) {
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  return constants_document(served->interface(), served->model().constants());
}

std::string weights(Rollout& rollout, const AdminRequest& request) {
  const bool digest = http::Query(request.query, {"digest"}).flag("digest");
  return weights_text(rollout, *model_of(rollout, request), digest);
}

std::string weights_difference(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {"with"});
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  const Model& model = served->model();
  WeightState other = WeightState::kPrevious;
  if (const auto with = query.text("with")) {
    SCONCE_CHECK(*with == "staged" || *with == "previous", kInvalidArgument,
                 "parameter with must be staged or previous, got '", excerpt(*with), "'");
    if (*with == "staged") other = WeightState::kStaged;
  } else {
    for (const WeightSetInfo& set : model.weight_sets())
      if (set.state != WeightState::kActive) other = set.state;
  }
  return difference_document(served->interface(), other, model.weights_difference(other));
}

std::string guard(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  return guard_document(served->interface(), rollout.guards.find(*served));
}

std::string commit_weights(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {"push", "store", "keep", "guard", "guard_errors", "guard_nan", "guard_p99"});
  const PublishOptions options = publish_options(query);
  if (const auto id = query.text("push")) return commit_push(rollout, request, push_id(*id), options);
  return change_weights(
      rollout, request,
      [&](const std::shared_ptr<registry::ServedModel>& served) {
        publish_staged(rollout, *served, published_by(request), options);
      },
      "committed", [](PushLedger& pushes, const PushPlace& place, uint64_t now) { pushes.set_published(place, now); });
}

std::string abort_weights(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {"push"});
  if (const auto id = query.text("push")) return abort_push(rollout, request, push_id(*id));
  return change_weights(
      rollout, request,
      [&](const std::shared_ptr<registry::ServedModel>& served) {
        const AuditEntry entry = audit_of("aborted", rollout, *served, WeightState::kStaged);
        served->model().abort_weights();
        rollout.audit.add(entry);
      },
      "aborted", [](PushLedger& pushes, const PushPlace& place, uint64_t) { pushes.set_dropped(place); });
}

std::string rollback_weights(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {"push", "store", "keep"});
  const PublishOptions options = publish_options(query);
  if (const auto id = query.text("push")) return rollback_push(rollout, request, push_id(*id), options);
  return change_weights(
      rollout, request,
      [&](const std::shared_ptr<registry::ServedModel>& served) {
        publish_previous(rollout, *served, published_by(request), options);
      },
      "rolled back", nullptr);
}

std::string release_weights(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  return change_weights(
      rollout, request,
      [&](const std::shared_ptr<registry::ServedModel>& served) {
        rollout.guards.check_over(*served);
        AuditEntry entry = audit_of("released", *served);
        for (const WeightSetInfo& set : served->model().weight_sets())
          if (set.state == WeightState::kPrevious) entry.label = set.label;
        served->model().release_previous();
        rollout.audit.add(entry);
      },
      "released", nullptr);
}

std::string set_weight_version(Rollout& rollout, const AdminRequest& request) {
  const WantedVersion wanted = wanted_version_of(request);
  return change_weights(
      rollout, request,
      [&](const std::shared_ptr<registry::ServedModel>& served) {
        const Model& model = served->model();
        const std::string active = model.weight_sets().front().label;
        SCONCE_CHECK(!wanted.label || *wanted.label == active, kBusy, "the label of the active weights is '",
                     excerpt(active), "', not '", excerpt(*wanted.label), "'");
        const std::string found = wanted.digest ? model.weights_digest(WeightState::kActive) : std::string();
        SCONCE_CHECK(!wanted.digest || *wanted.digest == found, kBusy, "the digest of the active weights is ", found,
                     ", not ", excerpt(*wanted.digest));
        set_active_version(rollout, served, wanted.weight_version);
      },
      "set to another version", nullptr);
}

std::string replicas(Rollout& rollout, const AdminRequest& request) {
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  return replicas_document(served->interface(), served->model().replicas());
}

std::string add_replicas(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  Model& model = served->model();
  Device device = model.info().devices.front();
  std::vector<int> cpus;
  uint64_t count = 1;
  if (!request.body.empty()) {
    JsonCursor::read_request(request.body, [&](JsonCursor& json, std::string_view key) {
      if (key == "count") {
        count = json.unsigned_integer("'count'");
      } else if (key == "device") {
        device = parse_device(json.string("'device'"));
      } else if (key == "cpus") {
        if (json.peek() == '"') {
          cpus = find_cores(json.string("'cpus'"));
          return;
        }
        json.array("'cpus'", [&](size_t) {
          cpus.push_back(static_cast<int>(std::min<uint64_t>(json.unsigned_integer("a core"), INT32_MAX)));
        });
      } else {
        SCONCE_FAIL(kInvalidArgument, "unknown member of the request: '", excerpt(key), "'");
      }
    });
  }
  SCONCE_CHECK(count >= 1 && model.replicas().size() + count <= kMaxReplicas, kInvalidArgument,
               "a model may have 1 to ", kMaxReplicas, " replicas");
  const ModelClaims::Claim claim(rollout.claims, *served, "its replicas are being changed");
  const size_t before = model.replicas().size();
  served->reserve_replicas(static_cast<int64_t>(before + count));
  // Also if this throws, as many requests are admitted as there are replicas.
  struct Recount {
    registry::ServedModel& served;
    int64_t count;
    ~Recount() { served.set_replicas(count); }
  } recount{*served, static_cast<int64_t>(before)};
  for (uint64_t i = 0; i < count; ++i) {
    model.add_replica(device, cpus);
    ++recount.count;
  }
  return told([&] { return replicas_document(served->interface(), model.replicas()); });
}

std::string remove_replica(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  Model& model = served->model();
  const ModelClaims::Claim claim(rollout.claims, *served, "its replicas are being changed");
  const std::vector<ReplicaInfo> replicas = model.replicas();
  int index = 0;
  for (const ReplicaInfo& replica : replicas) index = std::max(index, replica.index);
  if (!request.number.empty()) {
    index = static_cast<int>(std::min<uint64_t>(number(request.number), INT32_MAX));
  }
  model.remove_replica(index);
  served->set_replicas(static_cast<int64_t>(replicas.size()) - 1);
  return told([&] { return replicas_document(served->interface(), model.replicas()); });
}

std::string audit(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {"model", "limit"});
  std::string text = "{\"entries\":[";
  for (const std::string& entry : rollout.audit.last(query.text("model").value_or(""), limit_of(query)))
    text.append(text.back() == '[' ? "" : ",").append(entry);
  return text + "]}";
}

std::string operations(Rollout& rollout, const AdminRequest& /*request*/) {
  return operations_document(rollout.operations.list());
}

std::string operation(Rollout& rollout, const AdminRequest& request) {
  return operation_document(*rollout.operations.find(number(request.number)));
}

std::string cancel_operation(Rollout& rollout, const AdminRequest& request) {
  const std::shared_ptr<Operation> operation = rollout.operations.find(number(request.number));
  SCONCE_CHECK(!operation->over(), kFailedPrecondition, "operation ", operation->id, " is over");
  operation->cancel("operation " + std::to_string(operation->id) + " was cancelled");
  return operation_document(*operation);
}

void stage_weights(Rollout& rollout, AdminRequest request, AdminDone done) {
  const auto job = std::make_shared<WeightsJob>(rollout, std::move(request), std::move(done));
  rollout.admin_threads.run([job] { job->run(); }, [job](const std::exception_ptr& e) { job->fail(e); },
                            [job] { job->abandon(); });
}

void active_weights(Rollout& rollout, AdminRequest request, AdminDone done) {
  WeightsDownload::start(rollout, std::move(request), std::move(done), open_active_weights);
}

void set_weights(Rollout& rollout, AdminRequest request, AdminDone done) {
  WeightsDownload::start(rollout, std::move(request), std::move(done), open_named_set);
}

}  // namespace admin

size_t limit_of(const http::Query& query) {
  const std::string_view limit = query.text("limit").value_or("100");
  const auto most = parse_number<size_t>(limit);
  SCONCE_CHECK(most, kInvalidArgument, "parameter limit must be a number, got '", excerpt(limit), "'");
  return *most;
}

WeightsBody weights_body(std::string_view content_type) noexcept {
  content_type = content_type.substr(0, content_type.find(';'));
  while (content_type.ends_with(' ')) content_type.remove_suffix(1);
  const auto is = [&](boost::beast::string_view expected) {
    return boost::beast::iequals({content_type.data(), content_type.size()}, expected);
  };
  if (is("application/octet-stream")) return WeightsBody::kStream;
  return is("application/json") ? WeightsBody::kReference : WeightsBody::kUnsupported;
}

void start_admin(AdminThreads& threads, AdminRequest request, std::function<std::string(const AdminRequest&)> handler,
                 AdminDone done) {
  const auto failed = [done](const std::exception_ptr& problem) {
    const Failure failure = describe_failure(problem);
    done({failure.status, registry::error_document(failure.message)});
  };
  const auto abandoned = [done] { done({507, {}}); };
  threads.run(
      [handler = std::move(handler), request = std::move(request), done = std::move(done)] {
        const LogRequest log_request(request.id, request.peer);
        const AuditRequest audit_request(request);
        done({200, handler(request)});
      },
      failed, abandoned);
}

}  // namespace sconce::server::rollout
