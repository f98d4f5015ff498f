// Judges weights by the model's golden requests before they are staged or promoted, and records live answers as golden
// requests (docs/validation.md).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "server/registry/served_model.h"
#include "server/rollout/admin_api.h"
#include "server/weights/validation/golden.h"

namespace sconce::server::rollout {

// "golden" of a query: the treatment of weights that fail. kReport: their verdict is reported, and they are published.
enum class GoldenRule : int8_t { kRequire, kReport };
GoldenRule golden_rule(const http::Query& query);  // kInvalidArgument

// Runs the golden requests on the staged or a named set; nullopt if the model has none. The caller has claimed the
// model. Calls `check` before each request. Errors of Model::rehearse, Model::bring_set and Golden::judge.
std::optional<weights::GoldenVerdict> judge_staged(registry::ServedModel& served, const std::function<void()>& check);
std::optional<weights::GoldenVerdict> judge_set(registry::ServedModel& served, const std::string& name,
                                                const std::function<void()>& check);
// Throws Refused for a failed verdict, unless the rule is kReport; then it is logged. The audit log gets the verdict.
// push: the push of the set; empty: none.
void require_good(Rollout& rollout, const registry::ServedModel& served,
                  const std::optional<weights::GoldenVerdict>& verdict, GoldenRule rule, const std::string& push = {});

namespace admin {

AdminText golden, record_golden, end_recording;
AdminStart golden_recording;

}  // namespace admin

}  // namespace sconce::server::rollout
