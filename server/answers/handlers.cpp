#include "server/answers/handlers.h"

#include "sconce/check.h"
#include "server/answers/openapi.h"
#include "server/answers/page.h"
#include "server/answers/settings_handlers.h"
#include "server/base/log.h"
#include "server/models/documents.h"
#include "server/models/repository_request.h"

namespace sconce {
namespace {

void live(Response& response) { response.set_text("{\"live\":true}"); }

void ready(const Service& service, const Catalog& catalog, Response& response) {
  const bool is_ready = !service.draining.load(std::memory_order_relaxed) && catalog.is_ready();
  response.status = is_ready ? 200 : 503;
  response.set_text(is_ready ? "{\"ready\":true}" : "{\"ready\":false}");
}

void model_ready(const Service& service, const Catalog& catalog, const RouteMatch& route, Response& response) {
  const Catalog::Version& version = catalog.find(route.model, route.version);
  const bool is_ready = !service.draining.load(std::memory_order_relaxed) && version.state == Catalog::State::kReady &&
                        !version.model->failed() && version.fault().empty();
  response.status = is_ready ? 200 : 503;
  response.set_text("{\"name\":\"");
  response.set_text(route.model);  // a name that was found: letters, digits, '_', '-', '.'
  response.set_text(is_ready ? "\",\"ready\":true}" : "\",\"ready\":false}");
}

void metadata(const Catalog& catalog, const RouteMatch& route, Response& response) {
  const std::shared_ptr<ServedModel>& model = catalog.ready(route.model, route.version);
  std::vector<int64_t> versions;
  if (!route.version.empty()) {
    versions.push_back(model->interface().version);
  } else {
    for (const Catalog::Version& v : catalog.entry(route.model).versions) {
      if (v.state == Catalog::State::kReady) versions.push_back(v.version());
    }
  }
  response.set_text(metadata_document(model->interface(), versions));
}

void statistics(const Catalog& catalog, const RouteMatch& route, Response& response) {
  std::vector<ModelStatistics> models;
  for (const Catalog::Entry& entry : catalog.entries()) {
    if (!route.model.empty() && entry.name != route.model) continue;
    for (const Catalog::Version& v : entry.versions) {
      if (v.state != Catalog::State::kReady) continue;
      if (route.version.empty() || std::to_string(v.version()) == route.version)
        models.push_back(v.model->statistics_now());
    }
  }
  // Says why, where a model was named that is not there or not ready.
  if (models.empty() && !route.model.empty()) catalog.ready(route.model, route.version);
  response.set_text(statistics_document(models));
}

IndexEntry describe(const std::string& model, const Catalog::Version& version) {
  const std::string fault = version.fault();
  const char* const state = version.state == Catalog::State::kReady && fault.empty() ? "READY"
                            : version.state == Catalog::State::kLoading              ? "LOADING"
                                                                                     : "UNAVAILABLE";
  return {model, version.version(), state, fault.empty() ? version.reason : fault};
}

void model_list(const Catalog& catalog, Response& response) {
  std::vector<std::string> names;
  for (const Catalog::Entry& entry : catalog.entries()) names.push_back(entry.name);
  response.set_text(model_list_document(names));
}

void model_status(const Service& service, const Catalog& catalog, const RouteMatch& route, Response& response) {
  const Catalog::Version& found = catalog.find(route.model, route.version);
  const bool is_ready = !service.draining.load(std::memory_order_relaxed) && found.state == Catalog::State::kReady &&
                        found.fault().empty();
  std::vector<IndexEntry> versions;
  for (const Catalog::Version& v : catalog.entry(route.model).versions) {
    if (!route.version.empty() && &v != &found) continue;
    versions.push_back(describe(std::string(route.model), v));
  }
  response.status = is_ready ? 200 : 503;
  response.set_text(status_document(std::string(route.model), is_ready, versions));
}

void index(const Catalog& catalog, std::string_view body, Response& response) {
  const bool ready_only = read_index_request(body);
  std::vector<IndexEntry> entries;
  for (const Catalog::Entry& entry : catalog.entries()) {
    for (const Catalog::Version& v : entry.versions) {
      if (ready_only && (v.state != Catalog::State::kReady || !v.fault().empty())) continue;
      entries.push_back(describe(entry.name, v));
    }
  }
  response.set_text(index_document(entries));
}

ServerTotals totals_of(const Service& service) {
  ServerTotals totals;
  totals.start_time = service.start_time;
  totals.lost_traces = service.tracer.dropped();
  totals.failed_traces = service.tracer.failed();
  totals.request_memory = service.request_memory.used();
  totals.request_memory_limit = service.request_memory.limit();
  totals.lost_lines = lost_log_lines();
  totals.held_lines = service.refusals.all_held() + service.failures.all_held();
  return totals;
}

}  // namespace

void handle(Service& service, const Catalog& catalog, const RouteMatch& route, std::string_view body, bool accepts_html,
            Response& response) {
  switch (route.action) {
    case Action::kPage:
      response.type = accepts_html ? content_type::kHtml : content_type::kText;
      return response.set_text(page_text(catalog, service.public_url, accepts_html));
    case Action::kLive:
      return live(response);
    case Action::kReady:
      return ready(service, catalog, response);
    case Action::kServerMetadata:
      return response.set_text(server_document(service.shared_memory.allowed()));
    case Action::kModelReady:
      return model_ready(service, catalog, route, response);
    case Action::kModelMetadata:
      return metadata(catalog, route, response);
    case Action::kModelConfig:
      return response.set_text(catalog.ready(route.model, route.version)->config_json());
    case Action::kModelStatistics:
    case Action::kStatistics:
      return statistics(catalog, route, response);
    case Action::kRepositoryIndex:
      return index(catalog, body, response);
    case Action::kOpenApi:
      return response.set_text(openapi_document(route.listener));
    case Action::kTraceSettings:
    case Action::kChangeTrace:
    case Action::kLogSettings:
    case Action::kChangeLog:
    case Action::kSharedMemory:
    case Action::kRegisterSharedMemory:
    case Action::kUnregisterSharedMemory:
    case Action::kCudaSharedMemory:
    case Action::kRegisterCudaSharedMemory:
    case Action::kUnregisterCudaSharedMemory:
      return handle_settings(service, catalog, route, body, response);
    case Action::kModelList:
      return model_list(catalog, response);
    case Action::kModelStatus:
      return model_status(service, catalog, route, response);
    case Action::kModelSignature:
      return response.set_text(signature_document(catalog.ready(route.model, route.version)->interface()));
    case Action::kMetricsText:
      response.type = "text/plain; version=0.0.4; charset=utf-8";
      return response.set_text(
          metrics_text(catalog, service.counters, service.operations.counters(), totals_of(service)));
    default:
      break;  // the session's own, and those of admin_api.h
  }
  SCONCE_FAIL(kInternal, "route has no handler");
}

void answer_error(int status, std::string_view message, Response& response) {
  response.reset();
  response.status = status;
  response.set_text(error_document(message));
}

}  // namespace sconce
