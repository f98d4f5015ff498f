// Functions that the routes for SGLang's and vLLM's trainers share: query parameters, the model, bodies.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/query.h"
#include "server/rollout/rollout.h"
#include "server/rollout/trainer_tensors/trainer_tensors.h"
#include "server/rollout/work/admin_request.h"
#include "server/support/json_cursor.h"

namespace sconce::server::rollout::trainer {

inline constexpr const char* kNotPaused =
    "nothing is paused: requests continue, and each is answered by one complete weight set";

// The query parameters of all these routes.
http::Query query_of(const AdminRequest& request);
// The model in ?model=NAME, else the only model.
std::shared_ptr<registry::ServedModel> model_of(Rollout& rollout, const http::Query& query);
UpdateOptions options_of(const http::Query& query, bool full);
std::string active_version(const registry::ServedModel& served);

// Unknown members are ignored, as in these servers.
template <class F>
void read_body(const AdminRequest& request, F&& member) {
  if (request.body.empty()) return;
  JsonCursor::read_request(request.body, [&](JsonCursor& json, std::string_view key) {
    if (!member(json, key)) json.skip();
  });
}
inline void check_body(const AdminRequest& request) {
  read_body(request, [](JsonCursor&, std::string_view) { return false; });
}
// A text, or null as an empty text.
std::string text_or_null(JsonCursor& json, std::string_view what);
// what: its name, for errors.
std::string decoded(std::string_view base64, const char* what);

// Aborts long work at shutdown.
std::function<void()> check_of(const Rollout& rollout);
TrainerTensors tensors_of(const Rollout& rollout);
// kForbidden if signatures are required, because trainers send tensors and files without signatures.
void refuse_unsigned(const Rollout& rollout);

}  // namespace sconce::server::rollout::trainer
