// Weights that are about to be staged or promoted are judged by the model's golden requests, and live answers are
// recorded as such (docs/weights.md).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "server/registry/served_model.h"
#include "server/rollout/admin_api.h"
#include "server/weights/validation/golden.h"

namespace sconce::server {

// "golden" of a query: what happens to weights that fail. kReport: their verdict is shown, and they go on.
enum class GoldenRule : int8_t { kRequire, kReport };
GoldenRule golden_rule(const class Query& query);  // kInvalidArgument

// Runs the golden requests on the staged or a named set; nothing if the model has none. The caller has claimed the
// model. Calls `check` before each request. Errors of Model::rehearse, Model::bring_set and Golden::judge.
std::optional<GoldenVerdict> judge_staged(ServedModel& served, const std::function<void()>& check);
std::optional<GoldenVerdict> judge_set(ServedModel& served, const std::string& name,
                                       const std::function<void()>& check);
// Throws Refused for a verdict that is not good, unless the rule is to report it; then the log says so. The audit log
// gets the verdict. push: whose set it is; empty: none's.
void require_good(Service& service, const ServedModel& served, const std::optional<GoldenVerdict>& verdict,
                  GoldenRule rule, const std::string& push = {});

namespace admin {

AdminText golden, record_golden, end_recording;
AdminStart golden_recording;

}  // namespace admin

}  // namespace sconce::server
