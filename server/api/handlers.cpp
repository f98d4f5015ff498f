#include "server/api/handlers.h"

#include <optional>

#include "sconce/check.h"
#include "server/api/methods.h"
#include "server/api/openapi.h"
#include "server/api/page.h"
#include "server/api/routes.h"
#include "server/console/page_files.h"
#include "server/registry/documents.h"
#include "server/registry/model_weights.h"
#include "server/registry/repository_request.h"
#include "server/support/html/html_page.h"
#include "server/support/log.h"
#include "src/support/excerpt.h"

namespace sconce::server::api {
namespace {

constexpr std::string_view name_of(registry::OnDemand::State state) noexcept {
  switch (state) {
    case registry::OnDemand::State::kKnown:
      return "known";
    case registry::OnDemand::State::kLoading:
      return "loading";
    case registry::OnDemand::State::kFailed:
      return "failed";
    case registry::OnDemand::State::kUnloaded:
      return "unloaded";
  }
  return {};
}

// Adds entries for a model that is not loaded, one for each version.
void describe(const registry::OnDemand::Entry& entry, std::vector<registry::IndexEntry>& entries) {
  const bool loading = entry.state == registry::OnDemand::State::kLoading;
  for (const int64_t version : entry.versions) {
    std::string reason = entry.reason;
    if (entry.state == registry::OnDemand::State::kKnown) reason = "not loaded: a request for it loads it";
    if (entry.state == registry::OnDemand::State::kUnloaded) reason = "unloaded";
    entries.push_back({entry.name,
                       version,
                       loading ? "LOADING" : "UNAVAILABLE",
                       std::move(reason),
                       {},
                       std::string(name_of(entry.state))});
  }
}

// The status of the route's model if a request would load it; nullopt for other models.
std::optional<registry::OnDemand::Entry> not_loaded(const RequestView& request) {
  const registry::OnDemand* const on_demand = request.admission.loader.on_demand();
  if (on_demand == nullptr || request.catalog.look_up(request.route.model) != nullptr) return std::nullopt;
  registry::OnDemand::Entry entry = on_demand->status(request.catalog, request.route.model);
  return entry.versions.empty() ? std::nullopt : std::optional(std::move(entry));
}

registry::IndexEntry describe(const registry::Catalog::Entry& entry, const registry::Catalog::Version& version) {
  const std::string fault = version.fault();
  const char* const state = version.state == registry::Catalog::State::kReady && fault.empty() ? "READY"
                            : version.state == registry::Catalog::State::kLoading              ? "LOADING"
                                                                                               : "UNAVAILABLE";
  std::string reason = !fault.empty() ? fault : !version.held.empty() ? version.held : version.reason;
  if (const registry::ModelWeights* const weights = version.model ? version.model->find_weights() : nullptr)
    if (reason.empty() && weights->stored()) reason = weights->stored()->status().problem;
  std::vector<std::string> labels;
  for (const auto& [label, number] : entry.labels)
    if (number == version.version()) labels.push_back(label);
  std::string on_demand;
  if (version.file.on_demand) {
    on_demand = version.loaded()                                       ? "loaded"
                : version.state == registry::Catalog::State::kUnloaded ? "unloaded"
                                                                       : "failed";
    if (reason.empty() && version.model && version.model->uses() != nullptr)
      if (const std::string why = registry::OnDemand::why_it_stays(*version.model); !why.empty())
        reason = "it stays loaded: " + why;
  }
  return {entry.name, version.version(), state, std::move(reason), std::move(labels), std::move(on_demand)};
}

telemetry::ServerTotals totals_of(const Admission& admission, const telemetry::Telemetry& telemetry) {
  telemetry::ServerTotals totals;
  totals.start_time = telemetry.start_time;
  totals.lost_traces = telemetry.tracer.dropped();
  totals.failed_traces = telemetry.tracer.failed();
  if (telemetry.otlp) totals.otlp = &telemetry.otlp->counters();
  totals.on_demand = admission.loader.on_demand();
  totals.remote = telemetry.remote;
  totals.audit_failures = telemetry.updates.audit_failures.load(std::memory_order_relaxed);
  totals.request_memory = admission.request_memory.used();
  totals.request_memory_limit = admission.request_memory.limit();
  totals.lost_lines = lost_log_lines();
  if (admission.config.grpc.enabled()) {
    totals.calls = &telemetry.calls;
    totals.methods = kGrpcMethodNames;
  }
  totals.held_lines = telemetry.refusals.all_held() + telemetry.failures.all_held();
  return totals;
}

// kNotFound if the path names a set that the model does not have. An unloaded model has none.
void check_set(const RequestView& request, const registry::Catalog::Version& version) {
  const std::string_view set = request.route.set;
  if (set.empty()) return;
  const registry::ModelWeights* const weights = version.model ? version.model->find_weights() : nullptr;
  scheduling::ModelSets* const sets = weights ? weights->sets() : nullptr;
  SCONCE_CHECK(sets, kNotFound, "Request for unknown model: '", excerpt(request.route.model), "@", excerpt(set),
               "' is not found: the model holds no named sets (setting sets)");
  if (set != scheduling::ModelSets::kActive) sets->find(set);
}

bool is_draining(const RequestView& request) { return request.admission.draining.load(std::memory_order_relaxed); }

std::string index_text(const RequestView& request, bool ready_only) {
  std::vector<registry::IndexEntry> entries;
  for (const registry::Catalog::Entry& entry : request.catalog.entries()) {
    for (const registry::Catalog::Version& v : entry.versions) {
      if (ready_only && (v.state != registry::Catalog::State::kReady || !v.fault().empty())) continue;
      entries.push_back(describe(entry, v));
    }
  }
  if (!ready_only)
    for (const auto& [name, away] : request.catalog.away())
      entries.push_back({.name = name, .state = "UNAVAILABLE", .reason = away.reason});
  const registry::OnDemand* const on_demand = request.admission.loader.on_demand();
  if (on_demand != nullptr && !ready_only)
    for (const registry::OnDemand::Entry& entry : on_demand->missing(request.catalog)) describe(entry, entries);
  return registry::index_document(entries);
}

std::string names_text(const RequestView& request) {
  std::vector<std::string> names;
  for (const registry::Catalog::Entry& entry : request.catalog.entries()) names.push_back(entry.name);
  if (const registry::OnDemand* const on_demand = request.admission.loader.on_demand())
    for (registry::OnDemand::Entry& entry : on_demand->missing(request.catalog)) names.push_back(std::move(entry.name));
  return registry::model_list_document(names);
}

// A text about all models: for few models it is made for each request, else cached until something changes.
template <class Make>
std::shared_ptr<const std::string> text_of_all(const RequestView& request, CachedText& cache, Make&& make) {
  constexpr size_t kShort = 64 * 1024;
  const CachedText::Clock::time_point now = CachedText::Clock::now();
  const uint64_t revision = request.admission.repository.revision() + request.admission.controls.load();
  if (std::shared_ptr<const std::string> text = cache.find(revision, now)) return text;
  auto text = std::make_shared<const std::string>(make());
  if (text->size() > kShort) cache.keep(revision, now, text);
  return text;
}

}  // namespace

void give_metrics(const Admission& admission, const telemetry::Telemetry& telemetry, const registry::Catalog& catalog,
                  telemetry::MetricSink& sink, telemetry::HostLook& look) {
  telemetry::write_metrics(sink, catalog, telemetry.counters, kRouteNames, telemetry.updates,
                           totals_of(admission, telemetry), look);
}

namespace answers {

void page(const RequestView& request, http::Response& response) {
  const Admission& admission = request.admission;
  const bool of_inference = request.route.listener == http::kPublic;
  PageFacts facts;
  facts.reach = {url_for(admission.public_url, request.host, of_inference),
                 url_for(admission.grpc_address, request.host, false), admission.config.http_tls != TlsMode::kOff,
                 admission.credentials.snapshot()->needs_token(http::kInferScope)};
  if (!admission.admin_url.empty() && !console::kPageFiles.empty())
    facts.console = url_for(admission.admin_url, request.host, request.route.listener == http::kAdmin) + "/console";
  facts.ready = !is_draining(request) && request.catalog.is_ready();
  response.type = request.accepts_html ? http::content_type::kHtml : http::content_type::kText;
  response.fields = kPageFields;
  response.set_text(request.accepts_html ? page_html(request.catalog, facts) : page_text(request.catalog, facts));
}

void page_style(const RequestView& /*request*/, http::Response& response) {
  response.type = http::content_type::kStyle;
  response.fields = "X-Content-Type-Options: nosniff\r\nCache-Control: max-age=3600\r\n";
  response.set_text(server::page_style());
}

void console(const RequestView& request, http::Response& response) {
  const std::string_view name = request.route.file.empty() ? "index.html" : request.route.file;
  const console::PageFile* const file = console::find_page_file(name);
  SCONCE_CHECK(file != nullptr, kNotFound, "the console has no file '", excerpt(name), "'");
  console::answer_page_file(*file, request.accepts, request.if_none_match, response);
}

void openapi(const RequestView& request, http::Response& response) {
  response.set_text(openapi_document(request.route.listener));
}

void metrics_text(const RequestView& request, http::Response& response) {
  static telemetry::HostLook look;  // only one thread answers metrics
  const telemetry::Telemetry& telemetry = request.telemetry;
  response.type = "text/plain; version=0.0.4; charset=utf-8";
  response.set_text(telemetry::metrics_text(request.catalog, telemetry.counters, kRouteNames, telemetry.updates,
                                            totals_of(request.admission, telemetry), look));
  constexpr size_t kWorthIt = 1024;
  if (response.text_bytes() > kWorthIt) http::compress(request.accepts, response);
}

void live(const RequestView& /*request*/, http::Response& response) { response.set_text("{\"live\":true}"); }

void ready(const RequestView& request, http::Response& response) {
  const bool is_ready = !is_draining(request) && request.catalog.is_ready();
  response.status = is_ready ? 200 : 503;
  if (is_ready) return response.set_text("{\"ready\":true}");
  const std::string reason = request.catalog.why_unknown();
  if (reason.empty()) return response.set_text("{\"ready\":false}");
  response.set_text(dump(OrderedJson{{"ready", false}, {"reason", reason}}));
}

void server_metadata(const RequestView& request, http::Response& response) {
  response.set_text(registry::server_document(request.admission.shared_memory.allowed()));
}

// A model that a request would load counts as ready, unless the last try failed.
void model_ready(const RequestView& request, http::Response& response) {
  if (const std::optional<registry::OnDemand::Entry> entry = not_loaded(request)) {
    const bool will_be = !is_draining(request) && entry->state != registry::OnDemand::State::kFailed;
    response.status = will_be ? 200 : 503;
    response.set_text("{\"name\":\"");
    response.set_text(entry->name);
    response.set_text(will_be ? "\",\"ready\":true,\"on_demand\":\"" : "\",\"ready\":false,\"on_demand\":\"");
    response.set_text(name_of(entry->state));
    response.set_text("\"}");
    return;
  }
  const registry::Catalog::Version& version = request.catalog.find(request.route.model, request.route.version);
  check_set(request, version);
  const bool is_ready = !is_draining(request) && version.state == registry::Catalog::State::kReady &&
                        !version.model->failed() && version.fault().empty();
  response.status = is_ready ? 200 : 503;
  response.set_text("{\"name\":\"");
  response.set_text(request.route.model);  // a known name: letters, digits, '_', '-', '.'
  response.set_text(is_ready ? "\",\"ready\":true}" : "\",\"ready\":false}");
}

void model_metadata(const RequestView& request, http::Response& response) {
  const registry::Catalog& catalog = request.catalog;
  const http::RouteMatch& route = request.route;
  const std::shared_ptr<registry::ServedModel>& model = catalog.ready(route.model, route.version);
  check_set(request, catalog.find(route.model, route.version));
  std::vector<int64_t> versions;
  if (!route.version.empty()) {
    versions.push_back(model->interface().version);
  } else {
    for (const registry::Catalog::Version& v : catalog.entry(route.model).versions) {
      if (v.state == registry::Catalog::State::kReady) versions.push_back(v.version());
    }
  }
  response.set_text(registry::metadata_document(model->interface(), versions));
}

void model_config(const RequestView& request, http::Response& response) {
  response.set_text(request.catalog.ready(request.route.model, request.route.version)->config_json());
}

void statistics(const RequestView& request, http::Response& response) {
  const http::RouteMatch& route = request.route;
  std::vector<scheduling::ModelStatistics> models;
  for (const registry::Catalog::Entry& entry : request.catalog.entries()) {
    if (!route.model.empty() && entry.name != route.model) continue;
    for (const registry::Catalog::Version& v : entry.versions) {
      if (v.state != registry::Catalog::State::kReady) continue;
      if (route.version.empty() || &v == &request.catalog.find(route.model, route.version))
        models.push_back(v.model->statistics_now());
    }
  }
  // If the request names a model that is missing or not ready, throws the reason.
  if (models.empty() && !route.model.empty() && !not_loaded(request)) request.catalog.ready(route.model, route.version);
  response.set_text(registry::statistics_document(models));
}

void repository_index(const RequestView& request, http::Response& response) {
  const bool ready_only = registry::read_index_request(request.body);
  response.set_text(*text_of_all(request, ready_only ? request.admission.ready_index : request.admission.index,
                                 [&] { return index_text(request, ready_only); }));
}

void model_list(const RequestView& request, http::Response& response) {
  response.set_text(*text_of_all(request, request.admission.model_names, [&] { return names_text(request); }));
}

void model_status(const RequestView& request, http::Response& response) {
  const http::RouteMatch& route = request.route;
  if (const std::optional<registry::OnDemand::Entry> entry = not_loaded(request)) {
    std::vector<registry::IndexEntry> known;
    describe(*entry, known);
    const bool will_be = !is_draining(request) && entry->state != registry::OnDemand::State::kFailed;
    // The state that a request would find.
    for (registry::IndexEntry& version : known)
      if (will_be) version.state = "READY";
    response.status = will_be ? 200 : 503;
    response.set_text(registry::status_document(entry->name, will_be, known));
    return;
  }
  const registry::Catalog::Version& found = request.catalog.find(route.model, route.version);
  check_set(request, found);
  const bool is_ready =
      !is_draining(request) && found.state == registry::Catalog::State::kReady && found.fault().empty();
  std::vector<registry::IndexEntry> versions;
  const registry::Catalog::Entry& entry = request.catalog.entry(route.model);
  for (const registry::Catalog::Version& v : entry.versions) {
    if (!route.version.empty() && &v != &found) continue;
    versions.push_back(describe(entry, v));
  }
  response.status = is_ready ? 200 : 503;
  response.set_text(registry::status_document(std::string(route.model), is_ready, versions));
}

void model_signature(const RequestView& request, http::Response& response) {
  check_set(request, request.catalog.find(request.route.model, request.route.version));
  response.set_text(
      registry::signature_document(request.catalog.ready(request.route.model, request.route.version)->interface()));
}

}  // namespace answers

void answer_error(int status, std::string_view message, http::Response& response) {
  response.reset();
  response.status = status;
  response.set_text(registry::error_document(message));
}

}  // namespace sconce::server::api
