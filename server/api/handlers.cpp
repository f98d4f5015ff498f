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

namespace sconce::server {
namespace {

constexpr std::string_view name_of(OnDemand::State state) noexcept {
  switch (state) {
    case OnDemand::State::kKnown:
      return "known";
    case OnDemand::State::kLoading:
      return "loading";
    case OnDemand::State::kFailed:
      return "failed";
    case OnDemand::State::kUnloaded:
      return "unloaded";
  }
  return {};
}

// Adds entries for a model that is not loaded, one for each version.
void describe(const OnDemand::Entry& entry, std::vector<IndexEntry>& entries) {
  const bool loading = entry.state == OnDemand::State::kLoading;
  for (const int64_t version : entry.versions) {
    std::string reason = entry.reason;
    if (entry.state == OnDemand::State::kKnown) reason = "not loaded: a request for it loads it";
    if (entry.state == OnDemand::State::kUnloaded) reason = "unloaded";
    entries.push_back({entry.name,
                       version,
                       loading ? "LOADING" : "UNAVAILABLE",
                       std::move(reason),
                       {},
                       std::string(name_of(entry.state))});
  }
}

// The status of the route's model if a request would load it; nullopt for other models.
std::optional<OnDemand::Entry> not_loaded(const RequestView& request) {
  const OnDemand* const on_demand = request.admission.loader.on_demand();
  if (on_demand == nullptr || request.catalog.look_up(request.route.model) != nullptr) return std::nullopt;
  OnDemand::Entry entry = on_demand->status(request.catalog, request.route.model);
  return entry.versions.empty() ? std::nullopt : std::optional(std::move(entry));
}

IndexEntry describe(const Catalog::Entry& entry, const Catalog::Version& version) {
  const std::string fault = version.fault();
  const char* const state = version.state == Catalog::State::kReady && fault.empty() ? "READY"
                            : version.state == Catalog::State::kLoading              ? "LOADING"
                                                                                     : "UNAVAILABLE";
  std::string reason = !fault.empty() ? fault : !version.held.empty() ? version.held : version.reason;
  if (const ModelWeights* const weights = version.model ? version.model->find_weights() : nullptr)
    if (reason.empty() && weights->stored()) reason = weights->stored()->status().problem;
  std::vector<std::string> labels;
  for (const auto& [label, number] : entry.labels)
    if (number == version.version()) labels.push_back(label);
  std::string on_demand;
  if (version.file.on_demand) {
    on_demand = version.loaded() ? "loaded" : version.state == Catalog::State::kUnloaded ? "unloaded" : "failed";
    if (reason.empty() && version.model && version.model->uses() != nullptr)
      if (const std::string why = OnDemand::why_it_stays(*version.model); !why.empty())
        reason = "it stays loaded: " + why;
  }
  return {entry.name, version.version(), state, std::move(reason), std::move(labels), std::move(on_demand)};
}

ServerTotals totals_of(const Admission& admission, const Telemetry& telemetry) {
  ServerTotals totals;
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
void check_set(const RequestView& request, const Catalog::Version& version) {
  const std::string_view set = request.route.set;
  if (set.empty()) return;
  const ModelWeights* const weights = version.model ? version.model->find_weights() : nullptr;
  ModelSets* const sets = weights ? weights->sets() : nullptr;
  SCONCE_CHECK(sets, kNotFound, "Request for unknown model: '", excerpt(request.route.model), "@", excerpt(set),
               "' is not found: the model holds no named sets (setting sets)");
  if (set != ModelSets::kActive) sets->find(set);
}

bool is_draining(const RequestView& request) { return request.admission.draining.load(std::memory_order_relaxed); }

std::string index_text(const RequestView& request, bool ready_only) {
  std::vector<IndexEntry> entries;
  for (const Catalog::Entry& entry : request.catalog.entries()) {
    for (const Catalog::Version& v : entry.versions) {
      if (ready_only && (v.state != Catalog::State::kReady || !v.fault().empty())) continue;
      entries.push_back(describe(entry, v));
    }
  }
  if (!ready_only)
    for (const auto& [name, away] : request.catalog.away())
      entries.push_back({.name = name, .state = "UNAVAILABLE", .reason = away.reason});
  const OnDemand* const on_demand = request.admission.loader.on_demand();
  if (on_demand != nullptr && !ready_only)
    for (const OnDemand::Entry& entry : on_demand->missing(request.catalog)) describe(entry, entries);
  return index_document(entries);
}

std::string names_text(const RequestView& request) {
  std::vector<std::string> names;
  for (const Catalog::Entry& entry : request.catalog.entries()) names.push_back(entry.name);
  if (const OnDemand* const on_demand = request.admission.loader.on_demand())
    for (OnDemand::Entry& entry : on_demand->missing(request.catalog)) names.push_back(std::move(entry.name));
  return model_list_document(names);
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

void give_metrics(const Admission& admission, const Telemetry& telemetry, const Catalog& catalog, MetricSink& sink,
                  HostLook& look) {
  write_metrics(sink, catalog, telemetry.counters, kRouteNames, telemetry.updates, totals_of(admission, telemetry),
                look);
}

namespace answers {

void page(const RequestView& request, Response& response) {
  const Admission& admission = request.admission;
  const bool of_inference = request.route.listener == kPublic;
  PageFacts facts;
  facts.reach = {url_for(admission.public_url, request.host, of_inference),
                 url_for(admission.grpc_address, request.host, false), admission.config.http_tls != TlsMode::kOff,
                 admission.credentials.snapshot()->needs_token(kInferScope)};
  if (!admission.admin_url.empty() && !kPageFiles.empty())
    facts.console = url_for(admission.admin_url, request.host, request.route.listener == kAdmin) + "/console";
  facts.ready = !is_draining(request) && request.catalog.is_ready();
  response.type = request.accepts_html ? content_type::kHtml : content_type::kText;
  response.fields = kPageFields;
  response.set_text(request.accepts_html ? page_html(request.catalog, facts) : page_text(request.catalog, facts));
}

void page_style(const RequestView& /*request*/, Response& response) {
  response.type = content_type::kStyle;
  response.fields = "X-Content-Type-Options: nosniff\r\nCache-Control: max-age=3600\r\n";
  response.set_text(server::page_style());
}

void console(const RequestView& request, Response& response) {
  const std::string_view name = request.route.file.empty() ? "index.html" : request.route.file;
  const PageFile* const file = find_page_file(name);
  SCONCE_CHECK(file != nullptr, kNotFound, "the console has no file '", excerpt(name), "'");
  answer_page_file(*file, request.accepts, request.if_none_match, response);
}

void openapi(const RequestView& request, Response& response) {
  response.set_text(openapi_document(request.route.listener));
}

void metrics_text(const RequestView& request, Response& response) {
  static HostLook look;  // only one thread answers metrics
  const Telemetry& telemetry = request.telemetry;
  response.type = "text/plain; version=0.0.4; charset=utf-8";
  response.set_text(server::metrics_text(request.catalog, telemetry.counters, kRouteNames, telemetry.updates,
                                         totals_of(request.admission, telemetry), look));
  constexpr size_t kWorthIt = 1024;
  if (response.text_bytes() > kWorthIt) compress(request.accepts, response);
}

void live(const RequestView& /*request*/, Response& response) { response.set_text("{\"live\":true}"); }

void ready(const RequestView& request, Response& response) {
  const bool is_ready = !is_draining(request) && request.catalog.is_ready();
  response.status = is_ready ? 200 : 503;
  if (is_ready) return response.set_text("{\"ready\":true}");
  const std::string reason = request.catalog.why_unknown();
  if (reason.empty()) return response.set_text("{\"ready\":false}");
  response.set_text(dump(OrderedJson{{"ready", false}, {"reason", reason}}));
}

void server_metadata(const RequestView& request, Response& response) {
  response.set_text(server_document(request.admission.shared_memory.allowed()));
}

// A model that a request would load counts as ready, unless the last try failed.
void model_ready(const RequestView& request, Response& response) {
  if (const std::optional<OnDemand::Entry> entry = not_loaded(request)) {
    const bool will_be = !is_draining(request) && entry->state != OnDemand::State::kFailed;
    response.status = will_be ? 200 : 503;
    response.set_text("{\"name\":\"");
    response.set_text(entry->name);
    response.set_text(will_be ? "\",\"ready\":true,\"on_demand\":\"" : "\",\"ready\":false,\"on_demand\":\"");
    response.set_text(name_of(entry->state));
    response.set_text("\"}");
    return;
  }
  const Catalog::Version& version = request.catalog.find(request.route.model, request.route.version);
  check_set(request, version);
  const bool is_ready = !is_draining(request) && version.state == Catalog::State::kReady && !version.model->failed() &&
                        version.fault().empty();
  response.status = is_ready ? 200 : 503;
  response.set_text("{\"name\":\"");
  response.set_text(request.route.model);  // a known name: letters, digits, '_', '-', '.'
  response.set_text(is_ready ? "\",\"ready\":true}" : "\",\"ready\":false}");
}

void model_metadata(const RequestView& request, Response& response) {
  const Catalog& catalog = request.catalog;
  const RouteMatch& route = request.route;
  const std::shared_ptr<ServedModel>& model = catalog.ready(route.model, route.version);
  check_set(request, catalog.find(route.model, route.version));
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

void model_config(const RequestView& request, Response& response) {
  response.set_text(request.catalog.ready(request.route.model, request.route.version)->config_json());
}

void statistics(const RequestView& request, Response& response) {
  const RouteMatch& route = request.route;
  std::vector<ModelStatistics> models;
  for (const Catalog::Entry& entry : request.catalog.entries()) {
    if (!route.model.empty() && entry.name != route.model) continue;
    for (const Catalog::Version& v : entry.versions) {
      if (v.state != Catalog::State::kReady) continue;
      if (route.version.empty() || &v == &request.catalog.find(route.model, route.version))
        models.push_back(v.model->statistics_now());
    }
  }
  // If the request names a model that is missing or not ready, throws the reason.
  if (models.empty() && !route.model.empty() && !not_loaded(request)) request.catalog.ready(route.model, route.version);
  response.set_text(statistics_document(models));
}

void repository_index(const RequestView& request, Response& response) {
  const bool ready_only = read_index_request(request.body);
  response.set_text(*text_of_all(request, ready_only ? request.admission.ready_index : request.admission.index,
                                 [&] { return index_text(request, ready_only); }));
}

void model_list(const RequestView& request, Response& response) {
  response.set_text(*text_of_all(request, request.admission.model_names, [&] { return names_text(request); }));
}

void model_status(const RequestView& request, Response& response) {
  const RouteMatch& route = request.route;
  if (const std::optional<OnDemand::Entry> entry = not_loaded(request)) {
    std::vector<IndexEntry> known;
    describe(*entry, known);
    const bool will_be = !is_draining(request) && entry->state != OnDemand::State::kFailed;
    // The state that a request would find.
    for (IndexEntry& version : known)
      if (will_be) version.state = "READY";
    response.status = will_be ? 200 : 503;
    response.set_text(status_document(entry->name, will_be, known));
    return;
  }
  const Catalog::Version& found = request.catalog.find(route.model, route.version);
  check_set(request, found);
  const bool is_ready = !is_draining(request) && found.state == Catalog::State::kReady && found.fault().empty();
  std::vector<IndexEntry> versions;
  const Catalog::Entry& entry = request.catalog.entry(route.model);
  for (const Catalog::Version& v : entry.versions) {
    if (!route.version.empty() && &v != &found) continue;
    versions.push_back(describe(entry, v));
  }
  response.status = is_ready ? 200 : 503;
  response.set_text(status_document(std::string(route.model), is_ready, versions));
}

void model_signature(const RequestView& request, Response& response) {
  check_set(request, request.catalog.find(request.route.model, request.route.version));
  response.set_text(signature_document(request.catalog.ready(request.route.model, request.route.version)->interface()));
}

}  // namespace answers

void answer_error(int status, std::string_view message, Response& response) {
  response.reset();
  response.status = status;
  response.set_text(error_document(message));
}

}  // namespace sconce::server
