// Handlers that run on the I/O thread that read the request: health, metadata, configuration, statistics, index,
// metrics, page. routes.cpp assigns them to routes.
#pragma once

#include <string_view>

#include "server/api/admission.h"
#include "server/http/compression.h"
#include "server/http/response.h"
#include "server/http/router.h"
#include "server/telemetry/telemetry.h"

namespace sconce::server::api {

// A request from the handler's point of view.
struct RequestView {
  Admission& admission;
  telemetry::Telemetry& telemetry;
  const registry::Catalog& catalog;
  const http::RouteMatch& route;
  std::string_view body;
  bool accepts_html = false;
  http::Coding accepts = http::Coding::kIdentity;  // for compression of the answer
  std::string_view if_none_match = {};             // on the admin listener
  std::string_view host = {};                      // the client's name for this server; empty: not sent
};

// Throws errors in the form for clients.
using AnswerOnIoThread = void(const RequestView& request, http::Response& response);

namespace answers {

AnswerOnIoThread page, page_style, openapi, metrics_text, console;
AnswerOnIoThread live, ready, server_metadata;
AnswerOnIoThread model_ready, model_metadata, model_config, statistics;
AnswerOnIoThread repository_index;
AnswerOnIoThread model_list, model_status, model_signature;

}  // namespace answers

// Passes all metrics to the sink. Any thread; look: owned by the caller.
void give_metrics(const Admission& admission, const telemetry::Telemetry& telemetry, const registry::Catalog& catalog,
                  telemetry::MetricSink& sink, telemetry::HostLook& look);

// Writes the answer {"error": message} with this status.
void answer_error(int status, std::string_view message, http::Response& response);

}  // namespace sconce::server::api
