#include "server/console/overview.h"

#include <doctest/doctest.h>

#include <string>

#include "server/support/json_document.h"

namespace sconce::server::console {
namespace {

Overview::Model model(const char* name, const char* state = "READY") {
  Overview::Model one;
  one.name = name;
  one.state = state;
  return one;
}

std::vector<std::string> said(const Overview& now, const Overview* before = nullptr) {
  std::vector<std::string> texts;
  for (const Alert& alert : alerts_of(now, before)) texts.push_back((alert.critical ? "! " : "  ") + alert.text);
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("overview: nothing to say of a server that is well") {
  Overview now;
  now.models = {model("m"), model("gone", "UNLOADED")};
  CHECK(said(now).empty());
}

TEST_CASE("overview: what is wrong, the worst first") {
  Overview now;
  now.models = {model("a", "LOADING"), model("b", "UNAVAILABLE"), model("c", "HELD"), model("d")};
  now.models[1].reason = "the file is damaged";
  now.models[2].reason = "its label is not v2";
  now.models[3].lost = {"replica 0 on cuda:0: an illegal address"};
  now.models[3].weights_problem = "no space";
  CHECK(said(now) == Texts{"! b version 1 is not ready: the file is damaged",
                           "! c version 1 is not ready: its label is not v2",
                           "! d version 1 lost replica 0 on cuda:0: an illegal address", "  a version 1 is loading",
                           "  the weights of d version 1 are not stored: no space"});
  CHECK(alerts_of(now, nullptr)[0].model == "b");
  now.models.clear();
  now.server.draining = true;
  CHECK(said(now) == Texts{"! the server is shutting down"});
  CHECK(alerts_of(now, nullptr)[0].model.empty());
}

TEST_CASE("overview: an earlier model that is served in place of a bad one") {
  Overview now;
  now.models = {model("m")};
  now.models[0].reason = "the new file is damaged";
  CHECK(said(now) == Texts{"  m version 1: the new file is damaged"});
  now.models[0].reason.clear();
  now.models[0].peers = {"http://b:8003 serves v3 (weight version 3), this server v2 (weight version 2)"};
  CHECK(said(now) ==
        Texts{"  m version 1: http://b:8003 serves v3 (weight version 3), this server v2 (weight version 2)"});
}

TEST_CASE("overview: refusals and lost lines count since the last look") {
  Overview before, now;
  before.models = now.models = {model("m")};
  constexpr auto kRejected = static_cast<size_t>(scheduling::FailureReason::kRejected);
  before.models[0].totals.failures_by_reason[kRejected] = 5;
  now.models[0].totals.failures_by_reason[kRejected] = 12;
  now.models[0].queue = 4;
  now.server.lost_lines = 3;
  CHECK(said(now).empty());
  CHECK(said(now, &before) == Texts{"  m version 1 refuses requests: 7 since the last look, 4 wait",
                                    "  3 lines of the log were lost since the last look: nobody reads it in time"});
  CHECK(said(now, &now).empty());
  // A model that was loaded again counts on, and one that is new has no past.
  now.models[0].version = 2;
  CHECK(said(now, &before).size() == 1);
}

TEST_CASE("overview: a repository that is away is an alert until it is back") {
  Overview now;
  now.server.away = {"/models: cannot read directory"};
  CHECK(said(now, &now) == Texts{"! a repository is away: /models: cannot read directory"});
}

TEST_CASE("overview: the document") {
  Overview now;
  now.time = 1.5;
  now.server.version = "9.9";
  now.gpus = {{"GPU-1", 0.5, 4, std::nullopt, {}, {}, {}}};
  now.models = {model("m\xff")};
  Overview::Model& one = now.models[0];
  one.version = 3;
  one.totals.batches = {{1, {7, 0, 0, 0}}, {8, {2, 0, 0, 0}}};
  one.totals.latency[16] = 1;
  one.devices = {"cpu"};
  now.operations = {
      {4, "m", "v2", 3, rollout::Operation::State::kFailed, rollout::Operation::Phase::kFolding, 1, 2, 0.5}};
  const std::string text = overview_document(now, {{true, "", "bad"}, {false, "m", "so so"}});
  CHECK(text.find('\n') == std::string::npos);  // an event has one line
  const OrderedJson json = parse_document(text);
  CHECK(json["time"] == 1.5);
  CHECK(json["server"]["version"] == "9.9");
  CHECK(json["gpus"][0] == parse_document(R"({"uuid":"GPU-1","utilization":0.5,"memory_used":null,"memory_total":4,)"
                                          R"("power_watts":null})"));
  const OrderedJson& described = json["models"][0];
  CHECK(described["name"] == "m\xef\xbf\xbd");
  CHECK(described["version"] == "3");
  CHECK(described["kind"] == "package");
  CHECK(described["label"].is_null());
  CHECK(described["batches"] == parse_document("[[1,7],[8,2]]"));
  CHECK(described["latency"].size() == json["latency_bounds_us"].size() + 1);
  CHECK(described["latency"][16] == 1);
  CHECK(json["operations"][0]["state"] == "failed");
  CHECK(json["operations"][0]["phase"] == "folding");
  CHECK(json["alerts"] == parse_document(R"([{"severity":"critical","model":null,"text":"bad"},)"
                                         R"({"severity":"warning","model":"m","text":"so so"}])"));
}

}  // namespace sconce::server::console
