#include "server/telemetry/traces/trace_ring.h"

#include <doctest/doctest.h>

#include "server/support/json_document.h"

namespace sconce::server::telemetry {

using namespace std::chrono_literals;

namespace {

std::shared_ptr<const TraceRecord> record_of(int number, const char* model) {
  auto record = std::make_shared<TraceRecord>();
  record->model = model;
  record->request_id = std::to_string(number);
  record->start = TraceRecord::Clock::time_point(1s);
  record->sent = record->start + 1500ns;
  return record;
}

std::vector<std::string> ids(const TraceRing& ring, const char* model, size_t limit) {
  std::vector<std::string> list;
  for (const auto& trace : parse_document(ring.document(model, limit, 10s))) list.push_back(trace["request_id"]);
  return list;
}

}  // namespace

TEST_CASE("trace ring: the last records, oldest first") {
  TraceRing ring;
  CHECK(ring.document("", 10, 0s) == "[]");
  for (int i = 0; i < 300; ++i) ring.add(record_of(i, i % 2 == 0 ? "even" : "odd"));
  const std::vector<std::string> all = ids(ring, "", 1000);
  REQUIRE(all.size() == TraceRing::kMost);
  CHECK(all.front() == "44");
  CHECK(all.back() == "299");
  CHECK(ids(ring, "even", 2) == std::vector<std::string>{"296", "298"});
  CHECK(ids(ring, "", 1) == std::vector<std::string>{"299"});
  CHECK(ids(ring, "", 0).empty());
  CHECK(ids(ring, "none", 5).empty());
}

TEST_CASE("trace ring: times count from the request's start") {
  TraceRing ring;
  ring.add(record_of(1, "m"));
  const auto trace = parse_document(ring.document("m", 1, 10s))[0];
  CHECK(trace["start"] == 11.0);
  CHECK(trace["spans"] == parse_document(R"([{"name":"request","start_us":0.0,"duration_us":1.5}])"));
}

}  // namespace sconce::server::telemetry
