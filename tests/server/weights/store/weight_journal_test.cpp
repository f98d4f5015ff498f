#include "server/weights/store/weight_journal.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sconce/error.h"

namespace sconce::server::weights {

using namespace std::chrono_literals;

namespace {

StoredSet set_of(uint64_t weight_version) {
  StoredSet set;
  set.weight_version = weight_version;
  set.label = "step \"1200\"";
  set.digest = "sha-256:ab";
  set.file = "ab.safetensors";
  set.bytes = 123;
  set.time = "2026-01-31T12:00:00.000Z";
  set.by = {"10.0.0.7:51234", "request"};
  return set;
}

StoredPush push_of(const std::string& id, uint64_t weight_version = 0) {
  StoredPush push;
  push.id = id;
  push.state = weight_version == 0 ? "aborted" : "committed";
  push.weight_version = weight_version;
  push.stored = weight_version != 0;
  return push;
}

}  // namespace

TEST_CASE("journal: what is written is read") {
  Journal journal;
  journal.sets = {set_of(7), set_of(5)};
  journal.guard = StoredGuard{{60s, 0.25, 0.001, 5ms}, 45s + 3us, "p", "0123", 1};
  journal.pushes = {push_of("gone"), push_of("p", 7)};
  journal.pushes[1].label = "v2";
  journal.pushes[1].members = {"http://a:8003", "http://b:8003"};
  journal.pushes[1].member = 1;
  const Journal read = parse_journal(journal_text(journal), "journal.json");
  REQUIRE(read.sets.size() == 2);
  CHECK(read.sets[0].weight_version == 7);
  CHECK(read.sets[0].label == journal.sets[0].label);
  CHECK(read.sets[1].by.peer == "10.0.0.7:51234");
  REQUIRE(read.guard);
  CHECK(read.guard->bounds.window == 60s);
  CHECK(read.guard->bounds.errors == 0.25);
  CHECK(read.guard->bounds.nan == 0.001);
  CHECK(read.guard->bounds.p99 == 5ms);
  CHECK(read.guard->left == 45s + 3us);
  CHECK(read.guard->push == "p");
  CHECK(read.guard->instance == "0123");
  CHECK(read.guard->ended == 1);
  REQUIRE(read.pushes.size() == 2);
  CHECK(read.pushes[0].state == "aborted");
  CHECK(read.pushes[0].weight_version == 0);
  CHECK_FALSE(read.pushes[0].stored);
  CHECK(read.pushes[1].weight_version == 7);
  CHECK(read.pushes[1].stored);
  CHECK(read.pushes[1].label == "v2");
  CHECK(read.pushes[1].members == journal.pushes[1].members);
  CHECK(read.pushes[1].member == 1);
  CHECK(journal_text(read) == journal_text(journal));
}

TEST_CASE("journal: the release before finds its names, and its journals are read") {
  Journal journal;
  journal.sets = {set_of(7)};
  journal.pushes = {push_of("p", 7)};
  auto json = nlohmann::json::parse(journal_text(journal));
  nlohmann::json &set = json["sets"][0], &push = json["pushes"][0];
  CHECK(set["generation"] == set["weight_version"]);    // deprecated: the first
  CHECK(push["generation"] == push["weight_version"]);  // deprecated: the first
  CHECK(push["kept"] == push["stored"]);                // deprecated: the first
  for (const bool former : {false, true}) {
    nlohmann::json one = json;
    for (nlohmann::json* const object : {&one["sets"][0], &one["pushes"][0]})
      object->erase(former ? "weight_version" : "generation");  // deprecated: the second
    one["pushes"][0].erase(former ? "stored" : "kept");         // deprecated: the second
    CHECK(journal_text(parse_journal(one.dump(), "j")) == journal_text(journal));
  }
}

TEST_CASE("journal: of an earlier release, and of a later one") {
  const Journal before = parse_journal(R"({"format": 1, "sets": []})", "j");
  CHECK(before.sets.empty());
  CHECK_FALSE(before.guard);
  CHECK(before.pushes.empty());
  const Journal later = parse_journal(R"({"format": 1, "more": {}, "sets": [],
      "pushes": [{"push": "p", "state": "merged", "more": 1}], "guard": {"more": [], "left_us": 5, "window_us": 3}})",
                                      "j");
  CHECK(later.pushes.size() == 1);
  CHECK_FALSE(later.guard);  // there is nothing to watch
}

TEST_CASE("journal: the last pushes stay, each once") {
  Journal journal;
  for (int i = 0; i < 70; ++i) journal.note(push_of(std::to_string(i)));
  journal.note(push_of("30", 9));
  REQUIRE(journal.pushes.size() == Journal::kMaxPushes);
  CHECK(journal.pushes.front().id == "6");
  CHECK(journal.pushes.back().id == "69");
  CHECK(journal.pushes[24].id == "30");
  CHECK(journal.pushes[24].weight_version == 9);
}

TEST_CASE("journal: what cannot be read says why") {
  const std::string set =
      R"({"generation": 3, "digest": "x", "file": "x", "bytes": 1, "label": "", "time": "", "peer": "", "request": ""})";
  const auto with = [&](const std::string& more) { return R"({"format": 1, "sets": [)" + set + "]," + more + "}"; };
  CHECK(parse_journal(with(R"("guard": {"window_us": 5, "left_us": 9})"), "j").guard->left == 5us);
  for (const char* wrong :
       {R"("guard": 7)", R"("guard": {"left_us": -1})", R"("guard": {"left_us": 18446744073709551615})",
        R"("guard": {"errors": "x"})", R"("guard": {"ended": 0.5})", R"("pushes": {})", R"("pushes": [7])",
        R"("pushes": [{}])", R"("pushes": [{"push": "p", "generation": 0}])",
        R"("pushes": [{"push": "p", "generation": 9223372036854775807}])", R"("pushes": [{"push": "p", "members": 1}])",
        R"("pushes": [{"push": "p", "kept": 1}])"})
    CHECK_THROWS_WITH_AS(parse_journal(with(wrong), "DIR/journal.json"), doctest::Contains("DIR/journal.json"), Error);
}

}  // namespace sconce::server::weights
