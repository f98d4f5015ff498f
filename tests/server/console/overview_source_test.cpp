#include "server/console/overview_source.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "server/console/feed.h"
#include "server/support/json_document.h"
#include "tests/server/one_model_rollout.h"

namespace sconce::server::console {

using std::chrono::milliseconds;
using Clock = OverviewSource::Clock;

namespace {

OrderedJson document(const std::string& event) {
  const std::string begin = "event: overview\ndata: ";
  REQUIRE(event.starts_with(begin));
  REQUIRE(event.ends_with("\n\n"));
  return parse_document(std::string_view(event).substr(begin.size(), event.size() - begin.size() - 2));
}

}  // namespace

TEST_CASE("overview source: one event a second for all readers") {
  test::OneModelRollout world("fake_folded");
  OverviewSource source(*world.rollout, *world.telemetry);
  const Clock::time_point start = Clock::now();
  auto one = std::make_unique<OverviewSource::Reader>(source);
  const std::string* event = one->next(start);
  REQUIRE(event != nullptr);
  const std::string first = *event;
  CHECK(one->next(start + milliseconds(999)) == nullptr);
  {
    // Who comes later gets what there is.
    OverviewSource::Reader other(source);
    event = other.next(start + milliseconds(999));
    REQUIRE(event != nullptr);
    CHECK(*event == first);
    CHECK(document(first)["server"]["consoles"] == 1);
    event = other.next(start + milliseconds(1000));
    REQUIRE(event != nullptr);
    CHECK(document(*event)["server"]["consoles"] == 2);
    CHECK(one->next(start + milliseconds(1001)) == event);
  }
  // A reader that was away for long gets the newest event only, and the pace begins anew.
  event = one->next(start + milliseconds(60'500));
  REQUIRE(event != nullptr);
  CHECK(one->next(start + milliseconds(61'499)) == nullptr);
  CHECK(one->next(start + milliseconds(61'500)) != nullptr);
  CHECK(one->next(start + milliseconds(62'500)) != nullptr);
  // Nobody reads: what was is forgotten.
  one.reset();
  OverviewSource::Reader later(source);
  CHECK(later.next(start + milliseconds(62'600)) != nullptr);
}

TEST_CASE("overview source: the model as it is") {
  test::OneModelRollout world("fake_folded");
  OverviewSource source(*world.rollout, *world.telemetry);
  OverviewSource::Reader reader(source);
  const Clock::time_point start = Clock::now();
  OrderedJson model = document(*reader.next(start))["models"][0];
  CHECK(model["name"] == "fake");
  CHECK(model["state"] == "READY");
  CHECK(model["weight_version"] == 1);
  CHECK(model["generation"] == 1);  // deprecated
  CHECK(model["devices"] == parse_document(R"(["cpu"])"));
  CHECK(model["weight_bytes"] == world.model().weight_sets()[0].bytes);
  world.draining = true;
  world.rollout->operations.open("fake", 1, "v2", {});
  const OrderedJson now = document(*reader.next(start + milliseconds(1000)));
  CHECK(now["server"]["ready"] == false);
  CHECK(now["alerts"][0]["severity"] == "critical");
  CHECK(now["operations"][0]["state"] == "running");
  CHECK(now["operations"][0]["label"] == "v2");
}

TEST_CASE("feeds: the overview and the log, a piece at a time") {
  test::OneModelRollout world("fake_folded");
  OverviewSource source(*world.rollout, *world.telemetry);
  const Clock::time_point start = Clock::now();
  TextBuffer text;
  const std::unique_ptr<Feed> overview = feeds::overview(source, "");
  overview->append(text, start);
  document(std::string(text.view()));
  text.clear();
  overview->append(text, start);
  CHECK(text.size() == 0);
  CHECK_THROWS(feeds::overview(source, "x=1"));
  CHECK_THROWS(feeds::log_lines(source, "level=loud"));
  // A log that says nothing is told so now and then.
  const std::unique_ptr<Feed> log = feeds::log_lines(source, "level=error");
  log->append(text, start);
  CHECK(text.view() == ":\n\n");
  text.clear();
  log->append(text, start + std::chrono::seconds(14));
  CHECK(text.size() == 0);
  log->append(text, start + std::chrono::seconds(15));
  CHECK(text.view() == ":\n\n");
}

}  // namespace sconce::server::console
