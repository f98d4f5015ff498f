#include "server/registry/trial/load_trial.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <string>
#include <thread>

#include "fake_package.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sconce::server::registry {
namespace {

// A package whose child does what FAKE_TRIAL says (tests/runner/trial/fake_trial.cpp).
struct Tried {
  TempFolder folder;
  PackageEntry entry;
  TrialSlots slots;

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
    LoadTrial trial(slots, FAKE_TRIAL_PROGRAM, entry, with);
    trial.begin(true);
    trial.finish();
    CHECK_FALSE(trial.ended_well());
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

TEST_CASE("load trial: a server that ends waits neither for a slot nor for a child") {
  Tried tried("hang");
  const ModelConfig config = tried.config("trial_timeout=60m");
  LoadTrial running(tried.slots, FAKE_TRIAL_PROGRAM, tried.entry, config);
  running.begin(true);
  std::thread ending([&] { tried.slots.stop(); });
  CHECK(code_of([&] { running.finish(); }) == ErrorCode::kUnavailable);
  ending.join();
  LoadTrial late(tried.slots, FAKE_TRIAL_PROGRAM, tried.entry, config);
  CHECK(code_of([&] { late.begin(true); }) == ErrorCode::kUnavailable);
}

TEST_CASE("load trial: nothing is tried without a program, a time or a question") {
  Tried tried("abort");
  LoadTrial none(tried.slots, "", tried.entry, tried.config());
  none.begin(true);
  none.finish();
  CHECK(none.not_learned().empty());
  CHECK(none.ended_well());

  Tried small("abort", "fake_narrower");
  LoadTrial nothing(small.slots, FAKE_TRIAL_PROGRAM, small.entry, small.config());
  nothing.begin(true);
  nothing.finish();
  CHECK(nothing.not_learned().empty());
  CHECK(nothing.ended_well());
}

TEST_CASE("load trial: a program that cannot be started is a reason too") {
  Tried tried("abort");
  LoadTrial trial(tried.slots, "/no/such/program", tried.entry, tried.config());
  trial.begin(true);
  trial.finish();
  CHECK(trial.not_learned().find("cannot start a trial by /no/such/program") != std::string::npos);
}

TEST_CASE("load trial: one that begins ahead takes the child that waits, and never waits for a slot") {
  Tried tried("hang");
  const ModelConfig config = tried.config("trial_timeout=60m");
  auto waiting = std::make_unique<TrialProcess>(FAKE_TRIAL_PROGRAM);
  LoadTrial first(tried.slots, "/no/such/program", tried.entry, config);
  CHECK(first.begin_at_once(false, waiting));
  CHECK_FALSE(waiting);
  LoadTrial second(tried.slots, FAKE_TRIAL_PROGRAM, tried.entry, config);
  CHECK(second.begin_at_once(false, waiting));
  waiting = std::make_unique<TrialProcess>(FAKE_TRIAL_PROGRAM);
  LoadTrial third(tried.slots, FAKE_TRIAL_PROGRAM, tried.entry, config);
  CHECK_FALSE(third.begin_at_once(false, waiting));
  CHECK(waiting);
  LoadTrial nothing(tried.slots, FAKE_TRIAL_PROGRAM, tried.entry, tried.config("trial_timeout=0"));
  CHECK_FALSE(nothing.begin_at_once(false, waiting));
  CHECK(waiting);
  tried.slots.stop();
  CHECK(code_of([&] { first.finish(); }) == ErrorCode::kUnavailable);
}

}  // namespace sconce::server::registry
