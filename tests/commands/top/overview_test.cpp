#include "server/cli/top/overview.h"

#include <doctest/doctest.h>

#include "tests/commands/top/overview_events.h"
#include "tests/errors.h"

namespace sconce::server::cli {

TEST_CASE("overview: an event's members") {
  const Overview overview = overview_of(overview_event(1));
  REQUIRE(overview.models.size() == 2);
  CHECK(overview.models[0].name == "digits");
  CHECK(overview.models[0].label == "v2");
  CHECK(overview.models[0].latency.size() == 17);
  CHECK(overview.models[1].label.empty());
  CHECK(overview.bounds_s.size() == 16);
  CHECK(overview.bounds_s[0] == doctest::Approx(50e-6));
  CHECK(overview.gpus[0].utilization == 0.5);
  CHECK(!overview.gpus[0].memory_total);
  CHECK(overview.operations[0].total == uint64_t{4} << 20);
  CHECK(overview.alerts[0].critical);
  CHECK(overview.alerts[0].model == "other");
}

TEST_CASE("overview: what is none is refused, members of other types count as empty") {
  for (const char* const text : {"null", "3", "[]", "{}", R"({"server": {}})", R"({"time": 1, "server": 3})"})
    CHECK_THROWS_AS(overview_of(OrderedJson::parse(text)), Error);
  const Overview odd = overview_of(OrderedJson::parse(
      R"({"time": 1, "server": {"ready": 1, "requests": -5}, "models": [3, {"name": 7, "queue": 1e300, "latency": ["x", 2]}],
          "gpus": 3, "alerts": [null], "operations": [[]], "latency_bounds_us": [null]})"));
  CHECK(!odd.ready);
  CHECK(odd.requests == 0);
  REQUIRE(odd.models.size() == 2);
  CHECK(odd.models[1].name == "7");
  CHECK(odd.models[1].queue == 0);
  CHECK(odd.models[1].latency == std::vector<uint64_t>{0, 2});
}

TEST_CASE("overview: no text of a client reaches the terminal as it is") {
  OrderedJson event = overview_event(1);
  event["models"][0]["label"] = "\x1b[31mred\n\xc3\xa9";
  const std::string label = overview_of(event).models[0].label;
  CHECK(!label.empty());
  for (const char c : label) CHECK((c >= 0x20 && c < 0x7f));
}

TEST_CASE("history: rates, latencies and batches are those between events") {
  History history;
  history.add(overview_of(overview_event(5)));
  CHECK(!history.of(history.now().models[0]).requests);
  CHECK(!history.requests());
  history.add(overview_of(overview_event(6)));
  const Rates rates = history.of(history.now().models[0]);
  CHECK(*rates.requests == doctest::Approx(120));
  CHECK(*rates.failures == doctest::Approx(2));
  CHECK(*rates.mean_batch == doctest::Approx(2));
  CHECK(*rates.p50_s == doctest::Approx(100e-6));
  CHECK(*rates.p99_s == doctest::Approx(198e-6));
  CHECK(rates.history == std::vector<double>{120});
  CHECK(*history.requests() == doctest::Approx(130));
  CHECK(*history.cpu_share() == doctest::Approx(0.25));
  const Rates idle = history.of(history.now().models[1]);
  CHECK(*idle.requests == 0);
  CHECK(!idle.p50_s);
  CHECK(!idle.mean_batch);
}

TEST_CASE("history: times of requests beyond the last bound") {
  OrderedJson first = overview_event(1), second = overview_event(2);
  for (OrderedJson* event : {&first, &second})
    for (size_t i = 0; i < 17; ++i) (*event)["models"][0]["latency"][i] = 0;
  second["models"][0]["latency"][16] = 9;
  History history;
  history.add(overview_of(first));
  history.add(overview_of(second));
  CHECK(*history.of(history.now().models[0]).p50_s == doctest::Approx((50 << 15) * 1e-6));
}

TEST_CASE("history: a server that started again begins anew") {
  History history;
  for (int tick = 1; tick <= 3; ++tick) history.add(overview_of(overview_event(tick)));
  CHECK(history.of(history.now().models[0]).history.size() == 2);
  OrderedJson event = overview_event(4);
  event["server"]["started"] = 1790000003.0;
  history.add(overview_of(event));
  CHECK(!history.of(history.now().models[0]).requests);
}

TEST_CASE("history: it is bounded") {
  History history;
  for (int tick = 1; tick <= 200; ++tick) history.add(overview_of(overview_event(tick)));
  CHECK(history.of(history.now().models[0]).history.size() == 60);
}

}  // namespace sconce::server::cli
