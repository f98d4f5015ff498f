#include "server/trial/load_trial.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <string>
#include <thread>

#include "fake_package.h"
#include "tests/errors.h"
#include "tests/files.h"

using namespace sconce;
using namespace sconce::server;

namespace {

// A package whose child does what FAKE_TRIAL says (tests/runner/trial/fake_trial.cpp).
struct Tried {
  TempFolder folder;
  PackageEntry entry;
  TrialTurns turns;

  explicit Tried(const std::string& instead, const std::string& model = "fake_wide") {
    fake::write_directory(folder.path() / "package", {{"model", fake::model(model)}}, true);
    entry.name = "m";
    entry.file.stem = "m";
    entry.package = Package::open(folder.path() / "package");
    ::setenv("FAKE_TRIAL", instead.c_str(), 1);
  }
  ~Tried() { ::unsetenv("FAKE_TRIAL"); }

  ModelConfig config(const std::string& setting = "") const {
    ServerConfig config;
    if (!setting.empty()) config.set_model("m." + setting, "test");
    return config.model("m");
  }
  std::string not_learned(const ModelConfig& with) {
    LoadTrial trial(turns, FAKE_TRIAL_PROGRAM, entry, with);
    trial.finish();
    ModelInterface interface("m", 1, entry.package->model());
    trial.take(interface);
    CHECK(interface.row_finding.kind == RowFinding::Kind::kNone);
    return trial.not_learned();
  }
};

}  // namespace

TEST_CASE("load trial: a child that ends, hangs or reports nonsense leaves one line, which says what is missing") {
  for (const auto& [instead, why] : {std::pair("abort", "ended by SIGABRT after "),
                                     {"status", "ended with status 3 after "},
                                     {"flood", "was ended, because it reports without end"},
                                     {"nonsense", "reports nonsense: "},
                                     {"hang", "was ended at its limit after "}}) {
    CAPTURE(instead);
    Tried tried(instead);
    const std::string line =
        tried.not_learned(tried.config(instead == std::string("hang") ? "trial_timeout=300ms" : ""));
    CAPTURE(line);
    CHECK(line.starts_with("it is served without a warm-up run"));
    CHECK(line.find(std::string(": its trial in a child process ") + why) != std::string::npos);
    CHECK(line.find('\n') == std::string::npos);
  }
}

TEST_CASE("load trial: a server that ends waits neither for a turn nor for a child") {
  Tried tried("hang");
  const ModelConfig config = tried.config("trial_timeout=60m");
  LoadTrial running(tried.turns, FAKE_TRIAL_PROGRAM, tried.entry, config);
  std::thread ending([&] { tried.turns.stop(); });
  CHECK(code_of([&] { running.finish(); }) == ErrorCode::kUnavailable);
  ending.join();
  CHECK(code_of([&] { LoadTrial(tried.turns, FAKE_TRIAL_PROGRAM, tried.entry, config); }) == ErrorCode::kUnavailable);
}

TEST_CASE("load trial: nothing is tried without a program, a time or a question") {
  Tried tried("abort");
  CHECK(trial_for(tried.entry, tried.config()));
  CHECK_FALSE(trial_for(tried.entry, tried.config("trial_timeout=0")));
  LoadTrial none(tried.turns, "", tried.entry, tried.config());
  none.finish();
  CHECK(none.not_learned().empty());

  const auto request = trial_for(tried.entry, tried.config("batching=off"));
  REQUIRE(request);
  CHECK(request->warm_up);
  CHECK_FALSE(request->rows);
  Tried narrower("abort", "fake_narrower");
  ServerConfig both;
  both.set_model("m.batching=off", "test");
  CHECK_FALSE(trial_for(narrower.entry, both.model("m")));
}

TEST_CASE("load trial: a program that cannot be started is a reason too") {
  Tried tried("abort");
  LoadTrial trial(tried.turns, "/no/such/program", tried.entry, tried.config());
  trial.finish();
  CHECK(trial.not_learned().find("cannot start a trial by /no/such/program") != std::string::npos);
}
