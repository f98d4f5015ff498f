#include "server/registry/trial/trial_request.h"

#include "sconce/check.h"
#include "server/support/json_document.h"

namespace sconce::server::registry {
namespace {

// Reads the member with its type; if it is absent, the current value stays.
template <class T>
void take(const OrderedJson& from, const char* key, T& to) {
  if (const auto at = from.find(key); at != from.end()) at->get_to(to);
}

}  // namespace

std::string to_text(const TrialRequest& request) {
  OrderedJson document = {{"model", request.model},
                          {"threads", request.threads},
                          {"op_libraries", request.op_libraries},
                          {"check_inputs", request.check_inputs},
                          {"warm_up", request.warm_up},
                          {"weights", request.weights},
                          {"weights_ignore", request.weights_ignore},
                          {"outputs", request.outputs}};
  if (request.rows)
    document["rows"] = {{"max_batch_size", request.rows->max_batch_size}, {"preferred", request.rows->preferred}};
  if (request.inputs) document["inputs"] = {{"seed", request.inputs->seed}, {"sizes", request.inputs->sizes}};
  return document.dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
}

TrialRequest trial_request(std::string_view text) {
  const OrderedJson document = OrderedJson::parse(text, nullptr, false);
  SCONCE_CHECK(document.is_object(), kInvalidArgument, "a trial's request is not a JSON object");
  TrialRequest request;
  take(document, "model", request.model);
  take(document, "threads", request.threads);
  take(document, "op_libraries", request.op_libraries);
  take(document, "check_inputs", request.check_inputs);
  take(document, "warm_up", request.warm_up);
  take(document, "weights", request.weights);
  take(document, "weights_ignore", request.weights_ignore);
  take(document, "outputs", request.outputs);
  if (const auto rows = document.find("rows"); rows != document.end()) {
    TrialRequest::Rows& wanted = request.rows.emplace();
    take(*rows, "max_batch_size", wanted.max_batch_size);
    take(*rows, "preferred", wanted.preferred);
  }
  if (const auto inputs = document.find("inputs"); inputs != document.end()) {
    TrialRequest::Inputs& wanted = request.inputs.emplace();
    take(*inputs, "seed", wanted.seed);
    take(*inputs, "sizes", wanted.sizes);
  }
  return request;
}

}  // namespace sconce::server::registry
