#include "server/weights/validation/shadow.h"

#include <doctest/doctest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/runner/fake_runner.h"

namespace sconce::server::weights {

using namespace sconce::test;
using enum Shadow::State;

namespace {

std::vector<Values> constant(float w, float b) {
  return {{"scale.w", std::vector<float>(4, w)}, {"scale.b", std::vector<float>(4, b)}};
}

// The shadow's thread has the lowest priority, and tests run side by side.
void eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(holds());
}

// A model, and what a server does with it.
struct Live {
  Loaded loaded;
  scheduling::ModelSignature interface;
  AnswerTap answers;
  std::atomic<int64_t> waiting{0};
  std::optional<Shadow> shadow;

  explicit Live(double share, const std::string& name = "fake_model", bool source = true)
      : loaded(name, 1, source), interface("fake", 1, loaded.model->info().spec) {
    shadow.emplace(
        *loaded.model, interface, answers, [this] { return waiting.load(); }, share, 1 << 20);
  }
  // Answers a request with two rows full of x, then shows it.
  void ask(float x, bool fail_shadow = false) {
    const std::vector<Tensor> inputs{filled({2, 4}, x)};
    std::vector<Tensor> outputs(1);
    const RunInfo info = loaded.model->run(inputs, outputs);
    if (fail_shadow) loaded.knobs->fail_in_runs = 1;
    answers.show({inputs, outputs, info, {}});
  }
  template <class Change>
  void change(const Change& change) {
    shadow->weights_change();
    change(*loaded.model);
    shadow->weights_settled();
  }
  void stage(const std::vector<Values>& values, const std::string& label = "") {
    change([&](Model& model) { test::stage(model, values, {.label = label}); });
  }
  Shadow::State state() const { return shadow->report().state; }
  void wait_for(Shadow::State wanted) const {
    eventually([&] { return state() == wanted; });
  }
  ShadowSummary summary() const {
    const Shadow::Report report = shadow->report();
    REQUIRE(report.summary);
    return *report.summary;
  }
  void wait_for_compared(uint64_t count) const {
    eventually([&] { return summary().compared + summary().failed == count; });
  }
};

}  // namespace

TEST_CASE("shadow: a staged set answers live requests, and the answers are compared") {
  Live live(1);
  CHECK(live.state() == kWaiting);
  CHECK(!live.shadow->report().summary);
  CHECK(!live.answers.watched());
  live.stage(constant(2, 1), "next");
  live.wait_for(kRunning);
  double largest = 0, sum = 0;
  for (int i = 1; i <= 10; ++i) {
    const auto x = static_cast<float>(i);
    live.ask(x);
    live.wait_for_compared(static_cast<uint64_t>(i));
    for (int64_t c = 0; c < 4; ++c) {
      const double apart = std::abs(fake::expected(x, c) - (2 * x + 1));
      largest = std::max(largest, apart);
      sum += 2 * apart;
    }
  }
  const ShadowSummary summary = live.summary();
  CHECK(summary.label == "next");
  CHECK(summary.beside == 1);
  CHECK(summary.compared == 10);
  CHECK(summary.skipped() == 0);
  CHECK(summary.outputs[0].values.largest == largest);
  CHECK(summary.outputs[0].values.mean() == doctest::Approx(sum / 80));
  // The active set's largest is the last column, the staged set's the first.
  CHECK(summary.outputs[0].answers_of_other_argmax == 10);
  CHECK(summary.outputs[0].rows_of_other_argmax == 20);
  CHECK(summary.outputs[0].answers_with_new_nonfinite == 0);
  CHECK(summary.live.count() == 9);  // without the first
  CHECK(summary.staged.count() == 9);
  CHECK(summary.staged.mean().count() > 0);
  const Shadow::Totals totals = live.shadow->totals();
  CHECK(totals.compared == 10);
  CHECK(totals.other_argmax == 10);
  CHECK(totals.largest == largest);
}

TEST_CASE("shadow: equal weights give equal answers") {
  Live live(1);
  live.stage({{"scale.w", {1, 2, 3, 4}}, {"scale.b", {0, 10, 20, 30}}});
  live.wait_for(kRunning);
  live.ask(3);
  live.wait_for_compared(1);
  const ShadowSummary summary = live.summary();
  CHECK(summary.outputs[0].values.changed == 0);
  CHECK(summary.outputs[0].values.cosine() == doctest::Approx(1));
  CHECK(summary.outputs[0].answers_of_other_argmax == 0);
}

TEST_CASE("shadow: NaN of a staged set is noticed") {
  Live live(1);
  live.stage(constant(std::numeric_limits<float>::quiet_NaN(), 0));
  live.wait_for(kRunning);
  live.ask(1);
  live.wait_for_compared(1);
  CHECK(live.summary().outputs[0].answers_with_new_nonfinite == 1);
  CHECK(live.shadow->totals().new_nonfinite == 1);
}

TEST_CASE("shadow: it ends with the staged set, and its results stay until the next one") {
  Live live(1);
  live.stage(constant(2, 1), "a");
  live.wait_for(kRunning);
  live.ask(1);
  live.wait_for_compared(1);
  SUBCASE("committed") {
    live.change([](Model& model) { model.commit_weights(); });
  }
  SUBCASE("aborted") {
    live.change([](Model& model) { model.abort_weights(); });
  }
  CHECK(live.state() == kWaiting);
  CHECK(!live.answers.watched());
  CHECK(live.summary().label == "a");
  CHECK(live.summary().compared == 1);
  live.ask(1);
  const uint64_t active = live.loaded.model->weight_version();
  live.stage(constant(3, 1), "b");
  CHECK(live.summary().label == "b");
  CHECK(live.summary().compared == 0);
  CHECK(live.summary().beside == active);
  CHECK(live.shadow->totals().largest == 0);
  live.wait_for(kRunning);
  live.ask(1);
  live.wait_for_compared(1);
  CHECK(live.shadow->totals().compared == 2);
}

TEST_CASE("shadow: the next staged set begins anew, a change that leaves the set goes on") {
  Live live(1);
  live.stage(constant(2, 1), "a");
  live.wait_for(kRunning);
  live.ask(1);
  live.wait_for_compared(1);
  live.shadow->weights_change();
  CHECK(live.state() == kPaused);
  live.ask(1);
  live.shadow->weights_settled();
  live.wait_for(kRunning);
  live.ask(1);
  live.wait_for_compared(2);
  CHECK(live.summary().outputs[0].answers == 2);
  live.change([](Model& model) {
    model.abort_weights();
    test::stage(model, constant(5, 1), {.label = "b"});
  });
  live.wait_for(kRunning);
  CHECK(live.summary().label == "b");
  CHECK(live.summary().outputs[0].answers == 0);
}

TEST_CASE("shadow: the share can be changed, and 0 compares nothing") {
  Live live(0);
  live.stage(constant(2, 1));
  CHECK(live.state() == kOff);
  CHECK(!live.answers.watched());
  live.ask(1);
  CHECK(!live.shadow->report().summary);
  live.shadow->set_share(1);
  live.wait_for(kRunning);
  live.ask(1);
  live.wait_for_compared(1);
  live.shadow->set_share(0.5);
  CHECK(live.state() == kRunning);
  for (int i = 0; i < 10; ++i) {
    live.ask(1);
    eventually([&] { return live.summary().compared + live.summary().skipped() >= static_cast<uint64_t>(1 + i / 2); });
  }
  eventually([&] { return live.summary().compared == 6; });
  live.shadow->set_share(0);
  CHECK(live.state() == kOff);
  CHECK(!live.answers.watched());
  CHECK(live.summary().compared == 6);
  for (const double wrong : {-0.1, 1.1, std::nan("")})
    CHECK(code_of([&] { live.shadow->set_share(wrong); }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("shadow: it runs only while no request waits") {
  Live live(1);
  live.stage(constant(2, 1));
  live.wait_for(kRunning);
  live.ask(1);
  live.wait_for_compared(1);
  live.waiting = 1;
  live.ask(1);
  CHECK(live.summary().busy == 1);
  live.waiting = 0;
  live.ask(1);
  live.wait_for_compared(2);
}

TEST_CASE("shadow: a run that fails is counted, with the first message") {
  Live live(1);
  live.stage(constant(2, 1));
  live.wait_for(kRunning);
  live.ask(1, true);
  live.wait_for_compared(1);
  CHECK(live.summary().failed == 1);
  CHECK(live.summary().compared == 0);
  CHECK(!live.summary().first_failure.empty());
  CHECK(live.summary().outputs[0].answers == 0);
  live.ask(1);
  live.wait_for_compared(2);
  CHECK(live.summary().compared == 1);
  CHECK(live.shadow->totals().failed == 1);
}

TEST_CASE("shadow: a set that gets no replica is a reason, and the next try may do") {
  Live live(0);
  live.stage(constant(2, 1));
  live.loaded.knobs->fail_in_creates = 1;
  live.shadow->set_share(1);
  live.wait_for(kFailed);
  CHECK(!live.shadow->report().reason.empty());
  live.ask(1);
  CHECK(live.summary().compared + live.summary().skipped() == 0);
  live.shadow->set_share(1);
  live.wait_for(kRunning);
  CHECK(live.shadow->report().reason.empty());
}

TEST_CASE("shadow: models whose requests cannot be run again are refused") {
  const std::tuple<const char*, bool, const char*> models[] = {{"fake_state", true, "writes its buffers"},
                                                               {"fake_model", false, "may write its input 'ARGS[0]'"}};
  for (const auto& [name, source, why] : models) {
    CAPTURE(name);
    Live live(1, name, source);
    CHECK(live.state() == kRefused);
    CHECK(live.shadow->report().reason.find(why) != std::string::npos);
    CHECK(code_of([&] { live.shadow->set_share(0.5); }) == ErrorCode::kFailedPrecondition);
    live.shadow->weights_change();
    live.shadow->weights_settled();
    CHECK(!live.answers.watched());
    live.shadow->set_share(0);
    CHECK(live.state() == kOff);
  }
}

TEST_CASE("shadow: its thread has the lowest priority") {
  Live live(1);
  live.stage(constant(2, 1));
  live.wait_for(kRunning);
  int found = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "shadow") continue;
    ++found;
    CHECK(sched_getscheduler(std::stoi(task.path().filename().string())) == SCHED_IDLE);
  }
  CHECK(found == 1);
}

TEST_CASE("shadow: nothing of it stays") {
  Live live(1);
  const int64_t containers = live.loaded.knobs->live_containers;
  live.stage(constant(2, 1));
  live.wait_for(kRunning);
  live.loaded.knobs->sleep_us = 20000;
  for (int i = 0; i < 3; ++i) live.ask(1);
  live.change([](Model& model) { model.abort_weights(); });  // does not wait for the run
  live.shadow.reset();                                       // does
  CHECK(live.loaded.knobs->live_containers == containers);
  CHECK(!live.answers.watched());
}

TEST_CASE("shadow: sets come and go while clients ask") {
  Live live(1);
  std::atomic<bool> stop{false};
  std::atomic<int> asked{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i)
    clients.emplace_back([&] {
      while (!stop) {
        live.ask(1);
        ++asked;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  for (int g = 1; g <= 12; ++g) {
    // y = 1000 g: far from what any set before answered.
    live.stage(constant(0, 1000 * static_cast<float>(g)));
    if (g % 3 != 0) eventually([&] { return live.summary().compared >= 1; });
    if (g % 5 == 0) live.shadow->set_share(g % 2 == 0 ? 0.5 : 1);
    const ShadowSummary summary = live.summary();
    // Every other set was published.
    if (g > 1 && summary.compared > 0) CHECK(summary.outputs[0].values.largest == (g % 2 == 0 ? 1000 : 2000));
    live.change([&](Model& model) { g % 2 != 0 ? (void)model.commit_weights() : model.abort_weights(); });
    CHECK(live.summary().failed == 0);
  }
  stop = true;
  for (std::thread& client : clients) client.join();
  CHECK(asked > 0);
}

TEST_CASE("shadow: times") {
  RunTimes times;
  CHECK(times.mean().count() == 0);
  CHECK(times.quantile(0.5).count() == 0);
  for (int i = 1; i <= 101; ++i) times.add(std::chrono::nanoseconds(i));
  CHECK(times.mean().count() == 51);
  CHECK(times.quantile(0.5).count() == 51);
  CHECK(times.quantile(0.99).count() == 100);
  CHECK(times.quantile(1).count() == 101);
  for (size_t i = 0; i < RunTimes::kMost; ++i) times.add(std::chrono::nanoseconds(7));
  CHECK(times.quantile(1).count() == 7);
  CHECK(times.count() == 101 + RunTimes::kMost);
}

}  // namespace sconce::server::weights
