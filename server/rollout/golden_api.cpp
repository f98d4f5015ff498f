#include "server/rollout/golden_api.h"

#include <utility>

#include "sconce/check.h"
#include "server/http/query.h"
#include "server/registry/model_weights.h"
#include "server/rollout/served_weights.h"
#include "server/rollout/weights_download.h"
#include "server/support/failure.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "server/support/log.h"
#include "server/weights/validation/recording.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace {

constexpr uint64_t kMaxRecorded = 100'000;

// Null: none. A pipeline has none.
std::shared_ptr<weights::Recording> recording_of(const registry::ServedModel& served) {
  const registry::ModelWeights* const weights = served.find_weights();
  return weights ? weights->recording() : nullptr;
}

DownloadedFile open_recording(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  const std::shared_ptr<weights::Recording> recording = recording_of(*served);
  SCONCE_CHECK(recording, kNotFound, "no requests of the model were recorded");
  return {recording->open(), {}};
}

}  // namespace

GoldenRule golden_rule(const http::Query& query) {
  const auto text = query.text("golden");
  SCONCE_CHECK(!text || *text == "require" || *text == "report", kInvalidArgument,
               "parameter golden must be require or report, got '", excerpt(*text), "'");
  return text && *text == "report" ? GoldenRule::kReport : GoldenRule::kRequire;
}

std::optional<weights::GoldenVerdict> judge_staged(registry::ServedModel& served, const std::function<void()>& check) {
  const std::shared_ptr<weights::Golden>& golden = served.weights().golden();
  if (!golden) return std::nullopt;
  const Model& model = served.model();
  weights::GoldenVerdict about;
  for (const WeightSetInfo& set : model.weight_sets()) {
    if (set.state != WeightState::kStaged) continue;
    about.label = set.label;
    about.staged = set.since;
  }
  succeeds([&] { about.digest = model.weights_digest(WeightState::kStaged); });
  return golden->judge(served.interface(), *model.rehearse(WeightState::kStaged), std::move(about), check);
}

std::optional<weights::GoldenVerdict> judge_set(registry::ServedModel& served, const std::string& name,
                                                const std::function<void()>& check) {
  const std::shared_ptr<weights::Golden>& golden = served.weights().golden();
  if (!golden) return std::nullopt;
  weights::GoldenVerdict about;
  about.set = name;
  Model& model = served.model();
  about.label = model.named_set(name).label;
  succeeds([&] { about.digest = model.set_digest(name); });
  return golden->judge(served.interface(), *model.rehearse(model.bring_set(name)), std::move(about), check);
}

void require_good(Rollout& rollout, const registry::ServedModel& served,
                  const std::optional<weights::GoldenVerdict>& verdict, GoldenRule rule, const std::string& push) {
  if (!verdict) return;
  AuditEntry entry = audit_of("judged", served);
  entry.label = verdict->label;
  entry.set = verdict->set;
  entry.digest = verdict->digest;
  entry.push = push;
  entry.verdict = dump({{"verdict", verdict->good() ? "passed" : "failed"},
                        {"passed", verdict->passed},
                        {"failed", verdict->requests - verdict->passed}});
  rollout.audit.add(entry);
  if (verdict->good()) return;
  const std::string problem = weights::refusal_of(*verdict);
  if (rule == GoldenRule::kRequire) throw Refused(problem);
  log_warn("model {} version {}: {}; golden=report was asked for", served.interface().name, served.interface().version,
           printable(problem));
}

namespace admin {

std::string golden(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  OrderedJson json = {{"model", served->interface().name}, {"version", std::to_string(served->interface().version)}};
  const registry::ModelWeights* const weights = served->find_weights();
  if (weights && weights->golden())
    json.update(weights::golden_json(*weights->golden()));
  else
    json["requests"] = 0;
  if (const std::shared_ptr<weights::Recording> recording = recording_of(*served))
    json["recording"] = recording->json();
  return dump(json);
}

std::string record_golden(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  std::optional<uint64_t> requests;
  JsonCursor::read_request(request.body, [&](JsonCursor& json, std::string_view key) {
    SCONCE_CHECK(key == "requests", kInvalidArgument, "unknown member of the request: '", excerpt(key), "'");
    requests = json.unsigned_integer("'requests'");
  });
  SCONCE_CHECK(requests && *requests <= kMaxRecorded, kInvalidArgument,
               "'requests' must be a number of requests to record, at most ", kMaxRecorded);
  const std::shared_ptr<weights::Recording> before = recording_of(*served);
  if (*requests == 0) {
    if (before) before->stop();
    if (registry::ModelWeights* const weights = served->find_weights()) weights->record(nullptr, before);
    return "{}";
  }
  SCONCE_CHECK(!before || before->state() != weights::Recording::State::kRunning, kBusy,
               "requests of the model are being recorded");
  const ModelConfig config = rollout.config.model(served->interface().name);
  const auto recording = std::make_shared<weights::Recording>(
      served->interface(), served->model(), served->answers(),
      weights::Recording::Limits{*requests, static_cast<uint64_t>(config.golden_recording)});
  recording->start();
  if (const std::exception_ptr problem = exception_of([&] { served->weights().record(recording, before); })) {
    recording->stop();
    std::rethrow_exception(problem);
  }
  return dump(recording->json());
}

std::string end_recording(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  const std::shared_ptr<weights::Recording> recording = recording_of(*model_of(rollout, request));
  SCONCE_CHECK(recording, kNotFound, "no requests of the model were recorded");
  recording->stop();
  return dump(recording->json());
}

void golden_recording(Rollout& rollout, AdminRequest request, AdminDone done) {
  WeightsDownload::start(rollout, std::move(request), std::move(done), open_recording);
}

}  // namespace admin

}  // namespace sconce::server::rollout
