#include "server/telemetry/trace_record.h"

#include <doctest/doctest.h>

namespace sconce::server::telemetry {

using namespace std::chrono_literals;

namespace {

std::vector<std::string> names_of(const TraceRecord& record) {
  std::vector<std::string> names;
  for (const TraceSpan& span : spans_of(record)) names.emplace_back(span.name);
  return names;
}

TraceRecord answered() {
  TraceRecord record;
  record.start = TraceRecord::Clock::now();
  record.decoded = record.start + 10us;
  record.queue = 20us;
  record.run_done = record.start + 100us;
  record.compute = 50us;
  record.encoded = record.start + 110us;
  record.sent = record.start + 130us;
  record.levels.timestamps = true;
  return record;
}

}  // namespace

TEST_CASE("trace record: spans of a request, one after the other") {
  const TraceRecord record = answered();
  CHECK(names_of(record) == std::vector<std::string>{"request", "decode", "queue", "compute", "encode", "send"});
  const std::vector<TraceSpan> spans = spans_of(record);
  CHECK(spans[0].start == record.start);
  CHECK(spans[0].end == record.sent);
  for (size_t i = 2; i < spans.size(); ++i) CHECK(spans[i].start >= spans[i - 1].end);
}

TEST_CASE("trace record: a shared run has a span for its batch, which begins after the request was decoded") {
  TraceRecord record = answered();
  record.gather = 15us;
  const std::vector<TraceSpan> spans = spans_of(record);
  CHECK(names_of(record) ==
        std::vector<std::string>{"request", "decode", "queue", "batch", "compute", "encode", "send"});
  CHECK(spans[3].end == spans[4].start);
  CHECK(spans[3].end - spans[3].start == 15us);
  record.gather = 1h;
  CHECK(spans_of(record)[3].start == record.decoded);
}

TEST_CASE("trace record: a pipeline has a span for each step that began, in place of queue and compute") {
  TraceRecord record = answered();
  record.steps = {{"a", record.start + 20us, record.start + 60us}, {"b", record.start + 60us, record.start + 90us}};
  CHECK(names_of(record) == std::vector<std::string>{"request", "decode", "step", "step", "encode", "send"});
  const std::vector<TraceSpan> spans = spans_of(record);
  CHECK(spans[2].model == "a");
  CHECK(spans[3].model == "b");
  CHECK(spans[3].start == record.start + 60us);
  CHECK(spans[3].end == record.start + 90us);
  CHECK(spans[1].model.empty());
  // It failed at the second step.
  record.run_done = {};
  CHECK(names_of(record) == std::vector<std::string>{"request", "decode", "step", "step", "send"});
}

TEST_CASE("trace record: what was not reached has no span") {
  TraceRecord record = answered();
  record.run_done = {};
  CHECK(names_of(record) == std::vector<std::string>{"request", "decode", "send"});
  record.decoded = {};
  CHECK(names_of(record) == std::vector<std::string>{"request"});
  record = answered();
  record.levels = {false, true};
  CHECK(names_of(record) == std::vector<std::string>{"request"});
}

}  // namespace sconce::server::telemetry
