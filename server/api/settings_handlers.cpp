#include "server/api/settings_handlers.h"

#include "sconce/check.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "server/support/log.h"
#include "src/support/excerpt.h"

namespace sconce::server::api {
namespace {

using Json = OrderedJson;

std::string log_document() {
  const LogSettings settings = log_settings();
  return dump({{"log_file", ""},
               {"log_info", settings.info},
               {"log_warning", settings.warning},
               {"log_error", settings.error},
               {"log_verbose_level", settings.verbose},
               {"log_format", settings.short_dates ? "default" : "ISO8601"}});
}

void change_log_settings(std::string_view body) {
  LogSettings settings = log_settings();
  JsonCursor::read_request(body, [&](JsonCursor& json, std::string_view key) {
    if (key == "log_info") {
      settings.info = json.boolean("'log_info'");
    } else if (key == "log_warning") {
      settings.warning = json.boolean("'log_warning'");
    } else if (key == "log_error") {
      settings.error = json.boolean("'log_error'");
    } else if (key == "log_verbose_level") {
      settings.verbose = json.unsigned_integer("'log_verbose_level'");
    } else if (key == "log_format") {
      const std::string_view format = json.string("'log_format'");
      SCONCE_CHECK(format == "default" || format == "ISO8601", kInvalidArgument,
                   "'log_format' must be default or ISO8601, got '", excerpt(format), "'");
      settings.short_dates = format == "default";
    } else if (key == "log_file") {
      SCONCE_FAIL(kForbidden, "'log_file' can only be set where the server is started");
    } else {
      SCONCE_FAIL(kInvalidArgument, "unknown log setting: '", excerpt(key), "'");
    }
  });
  change_log(settings);
  write_log(LogLevel::kInfo, "log settings were changed over HTTP");
}

std::string regions_document(const RequestView& request, codecs::SharedMemory::Kind kind) {
  Json list = Json::array();
  for (const auto& region : request.admission.shared_memory.list(kind, request.route.region)) {
    Json json = {{"name", region->name}};
    if (const codecs::PosixRegion* posix = region->posix()) {
      json["key"] = posix->key;
      json["offset"] = posix->offset;
    } else {
      json["device_id"] = region->device()->where().index;
    }
    json["byte_size"] = region->bytes;
    list.push_back(std::move(json));
  }
  return dump(list);
}

// kNotFound if the route names an unknown model.
void check_model(const RequestView& request) {
  if (!request.route.model.empty()) request.catalog.entry(request.route.model);
}

}  // namespace

namespace answers {

void trace_settings(const RequestView& request, http::Response& response) {
  check_model(request);
  response.set_text(request.telemetry.tracer.settings(request.route.model));
}

void change_trace(const RequestView& request, http::Response& response) {
  check_model(request);
  request.telemetry.tracer.change(request.route.model, request.body);
  response.set_text(request.telemetry.tracer.settings(request.route.model));
}

void log_settings(const RequestView& /*request*/, http::Response& response) { response.set_text(log_document()); }

void change_log(const RequestView& request, http::Response& response) {
  change_log_settings(request.body);
  response.set_text(log_document());
}

void regions(const RequestView& request, http::Response& response) {
  response.set_text(regions_document(request, codecs::SharedMemory::Kind::kPosix));
}

void register_region(const RequestView& request, http::Response& /*response*/) {
  request.admission.shared_memory.add(codecs::SharedMemory::Kind::kPosix, request.route.region, request.body);
}

void unregister_region(const RequestView& request, http::Response& /*response*/) {
  request.admission.shared_memory.remove(codecs::SharedMemory::Kind::kPosix, request.route.region);
}

void cuda_regions(const RequestView& request, http::Response& response) {
  response.set_text(regions_document(request, codecs::SharedMemory::Kind::kDevice));
}

void register_cuda_region(const RequestView& request, http::Response& /*response*/) {
  request.admission.shared_memory.add(codecs::SharedMemory::Kind::kDevice, request.route.region, request.body);
}

void unregister_cuda_region(const RequestView& request, http::Response& /*response*/) {
  request.admission.shared_memory.remove(codecs::SharedMemory::Kind::kDevice, request.route.region);
}

}  // namespace answers
}  // namespace sconce::server::api
