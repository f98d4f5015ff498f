// Events as a server sends them (GET /v2/admin/live), for the tests of `sconce top`.
#pragma once

#include <string>

#include "server/support/json_document.h"

namespace sconce {

// The event of the second `tick`: since the event before, the model has had 120 requests in 60 runs, of which half took
// up to 100 us and half up to 200 us, and 2 of them failed.
inline OrderedJson overview_event(int tick) {
  using Json = OrderedJson;
  const auto n = static_cast<uint64_t>(tick);
  Json latency = Json::array();
  for (size_t i = 0; i < 17; ++i) latency.push_back(i == 1 || i == 2 ? 60 * n : 0);
  Json bounds = Json::array();
  for (int i = 0; i < 16; ++i) bounds.push_back(50 << i);
  Json models = Json::array();
  models.push_back({{"name", "digits"},
                    {"version", "1"},
                    {"state", "READY"},
                    {"reason", ""},
                    {"kind", "package"},
                    {"generation", 2},
                    {"label", "v2"},
                    {"staged", false},
                    {"sets", 0},
                    {"weight_bytes", 61480},
                    {"set_bytes", 0},
                    {"replicas", 1},
                    {"devices", Json::array({"cpu"})},
                    {"queue", 4},
                    {"success", 118 * n},
                    {"failures", 2 * n},
                    {"inferences", 120 * n},
                    {"executions", 60 * n},
                    {"latency", latency},
                    {"rejected", 0},
                    {"tokens", 0},
                    {"weights_problem", ""}});
  models.push_back(
      {{"name", "other"}, {"version", "3"}, {"state", "UNAVAILABLE"}, {"reason", "gone"}, {"label", nullptr}});
  Json gpus = Json::array();
  gpus.push_back({{"uuid", "GPU-1"},
                  {"utilization", 0.5},
                  {"memory_used", 1 << 30},
                  {"memory_total", nullptr},
                  {"power_watts", 300.0}});
  Json operations = Json::array();
  operations.push_back({{"id", 3},
                        {"model", "digits"},
                        {"version", "1"},
                        {"state", "running"},
                        {"phase", "receiving"},
                        {"bytes", 1 << 20},
                        {"total", 4 << 20},
                        {"seconds", 0.5},
                        {"label", "v3"}});
  Json alerts = Json::array();
  alerts.push_back({{"severity", "critical"}, {"model", "other"}, {"text", "other is not ready: gone"}});
  return {{"time", 1790000000.0 + tick},
          {"server",
           {{"version", "0.1.0"},
            {"instance", "a"},
            {"started", 1789990000.0},
            {"ready", false},
            {"draining", false},
            {"resident_bytes", 100 << 20},
            {"cpu_seconds", 0.25 * tick},
            {"connections", 3},
            {"consoles", 1},
            {"requests", 130 * n},
            {"lost_lines", 0}}},
          {"gpus", gpus},
          {"models", models},
          {"latency_bounds_us", bounds},
          {"operations", operations},
          {"alerts", alerts}};
}

}  // namespace sconce
