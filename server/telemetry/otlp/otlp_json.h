// Parts of OpenTelemetry's OTLP in JSON: attributes, the resource (this process), and requests to a collector.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/support/config.h"
#include "server/support/json_document.h"

namespace sconce::server::telemetry {

OrderedJson otlp_text(std::string_view key, std::string_view value);
OrderedJson otlp_integer(std::string_view key, int64_t value);
OrderedJson otlp_flag(std::string_view key, bool value);
// 64-bit numbers are texts in OTLP's JSON.
std::string otlp_nanos(std::chrono::nanoseconds since_1970);

// The resource as JSON, from the settings otlp_service and otlp_resource. kInvalidArgument.
std::string otlp_resource(const ServerConfig& config);

// Requests with one resource and one scope. items: elements of the JSON array, separated by commas.
std::string spans_request(std::string_view resource, std::string_view items);
std::string metrics_request(std::string_view resource, std::string_view items);

}  // namespace sconce::server::telemetry
