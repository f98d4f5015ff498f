#include "server/rollout/shadow_api.h"

#include <algorithm>
#include <optional>

#include "sconce/check.h"
#include "server/http/query.h"
#include "server/registry/model_weights.h"
#include "server/rollout/served_weights.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "server/support/log.h"
#include "server/support/time_text.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace {

using Json = OrderedJson;

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

Json times(const weights::RunTimes& runs) {
  return {{"mean", seconds(runs.mean())}, {"p50", seconds(runs.quantile(0.5))}, {"p99", seconds(runs.quantile(0.99))}};
}

Json described(const std::string& name, const weights::OutputDifference& output) {
  const Difference& values = output.values;
  return {{"name", name},
          {"answers", output.answers},
          {"reshaped", output.reshaped},
          {"elements", values.elements},
          {"changed", values.changed},
          {"largest", number_or_null(values.largest)},
          {"mean", number_or_null(values.mean())},
          {"relative", number_or_null(values.relative())},
          {"cosine", number_or_null(values.cosine())},
          {"changed_argmax", output.answers_of_other_argmax},
          {"rows", output.rows},
          {"rows_changed_argmax", output.rows_of_other_argmax},
          {"new_nonfinite", output.answers_with_new_nonfinite}};
}

void describe(Json& json, const scheduling::ModelSignature& model, const weights::ShadowSummary& summary) {
  json["set"] = {{"label", summary.label}, {"since", time_text(summary.since)}};
  if (!summary.digest.empty()) json["set"]["digest"] = summary.digest;
  json["beside"] = summary.beside;
  json["compared"] = summary.compared;
  json["failed"] = summary.failed;
  if (!summary.first_failure.empty()) json["first_failure"] = summary.first_failure;
  json["skipped"] = summary.skipped();
  json["skipped_for"] = {
      {"busy", summary.busy}, {"full", summary.full}, {"placed", summary.placed}, {"ended", summary.ended}};
  json["timed"] = summary.live.count();
  json["seconds"] = {{"active", times(summary.live)}, {"staged", times(summary.staged)}};
  json["outputs"] = Json::array();
  for (size_t i = 0; i < summary.outputs.size(); ++i)
    json["outputs"].push_back(described(model.output_names.name(i), summary.outputs[i]));
}

std::string shadow_text(const registry::ServedModel& served) {
  const weights::Shadow::Report report = served.weights().shadow().report();
  Json json = {{"model", served.interface().name}, {"version", std::to_string(served.interface().version)}};
  json["share"] = report.share;
  json["state"] = weights::state_name(report.state);
  if (!report.reason.empty()) json["reason"] = report.reason;
  if (report.summary) describe(json, served.interface(), *report.summary);
  return dump(json);
}

}  // namespace

OrderedJson shadow_in_short(const weights::Shadow::Report& report) {
  Json json = {{"state", weights::state_name(report.state)}, {"share", report.share}};
  if (!report.summary) return json;
  const weights::ShadowSummary& summary = *report.summary;
  json["compared"] = summary.compared;
  json["failed"] = summary.failed;
  json["skipped"] = summary.skipped();
  double largest = 0;
  uint64_t other_argmax = 0, new_nonfinite = 0;
  for (const weights::OutputDifference& output : summary.outputs) {
    largest = std::max(largest, output.values.largest);
    other_argmax = std::max(other_argmax, output.answers_of_other_argmax);
    new_nonfinite = std::max(new_nonfinite, output.answers_with_new_nonfinite);
  }
  json["largest"] = number_or_null(largest);
  json["changed_argmax"] = other_argmax;
  json["new_nonfinite"] = new_nonfinite;
  return json;
}

namespace admin {

std::string shadow(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  return shadow_text(*model_of(rollout, request));
}

std::string change_shadow(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  std::optional<double> share;
  JsonCursor::read_request(request.body, [&](JsonCursor& json, std::string_view key) {
    SCONCE_CHECK(key == "share", kInvalidArgument, "unknown member of the request: '", excerpt(key), "'");
    share = json.number("'share'");
  });
  SCONCE_CHECK(share, kInvalidArgument, "the request has no 'share'");
  const std::shared_ptr<registry::ServedModel> served = model_of(rollout, request);
  served->weights().shadow().set_share(*share);
  log_info("model {} version {}: {} of its requests also run on a staged set", served->interface().name,
           served->interface().version, *share);
  return shadow_text(*served);
}

}  // namespace admin
}  // namespace sconce::server::rollout
