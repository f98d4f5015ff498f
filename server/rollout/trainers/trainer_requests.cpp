#include "server/rollout/trainers/trainer_requests.h"

#include <string>
#include <utility>

#include "sconce/check.h"
#include "server/rollout/admin_documents.h"
#include "server/rollout/work/update_query.h"
#include "server/support/json/base64.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout::trainer {

http::Query query_of(const AdminRequest& request) {
  return http::Query(request.query, {"model", "mode", "ignore", "wait_for_inflight_requests", "clear_cache",
                                     "include_dp", "timeout", "name", "truncate_size"});
}

// The model in ?model=NAME, else the only model.
std::shared_ptr<registry::ServedModel> model_of(Rollout& rollout, const http::Query& query) {
  const std::shared_ptr<const registry::Catalog> catalog = rollout.repository.snapshot();
  if (const auto name = query.text("model")) return catalog->loaded(*name, {});
  const std::vector<registry::Catalog::Entry>& entries = catalog->entries();
  SCONCE_CHECK(!entries.empty(), kUnavailable, "no model is served");
  if (entries.size() == 1) return catalog->loaded(entries.front().name, {});
  std::string names;
  for (const registry::Catalog::Entry& entry : entries) names += (names.empty() ? "" : ", ") + entry.name;
  SCONCE_FAIL(kInvalidArgument, "several models are served, name one with ?model=NAME: ", excerpt(names));
}

UpdateOptions options_of(const http::Query& query, bool full) {
  UpdateOptions options;
  read_update_query(query, full, options);
  return options;
}

std::string active_version(const registry::ServedModel& served) {
  const WeightSetInfo active = served.model().weight_sets().front();
  return weights_name(active.weight_version, active.label);
}

std::string text_or_null(JsonCursor& json, std::string_view what) {
  return json.consume_null() ? std::string() : std::string(json.string(what));
}

std::string decoded(std::string_view text, const char* what) {
  std::optional<std::string> bytes = decode_base64(text);
  SCONCE_CHECK(bytes, kInvalidArgument, what, " is not base64");
  return std::move(*bytes);
}

std::function<void()> check_of(const Rollout& rollout) {
  return [&rollout] { SCONCE_CHECK(!rollout.draining, kUnavailable, "the server is shutting down"); };
}

TrainerTensors tensors_of(const Rollout& rollout) {
  TrainerTensors tensors;
  tensors.left.check = check_of(rollout);
  return tensors;
}

void refuse_unsigned(const Rollout& rollout) { rollout.signatures.refuse_unsigned("weights from a trainer"); }

}  // namespace sconce::server::rollout::trainer
