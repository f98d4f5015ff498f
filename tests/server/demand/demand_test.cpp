#include "server/demand/demand.h"

#include <doctest/doctest.h>

#include <functional>
#include <future>
#include <memory>

#include "sconce/check.h"

namespace sconce::server {
namespace {

// Calls `work` for each load.
class Calls final : public Demand::Loader {
 public:
  using Work = std::function<void(const std::string&, const Demand::Wanted&)>;
  explicit Calls(Work work) : work_(std::move(work)) {}
  void load(const std::string& name, const Demand::Wanted& wanted) override {
    ++count;
    work_(name, wanted);
  }
  std::atomic<int> count{0};

 private:
  const Work work_;
};

struct Waits {
  Demand::Waiter waiter;
  std::promise<void> told;
  Waits() {
    waiter.context = this;
    waiter.notify = [](void* context) noexcept { static_cast<Waits*>(context)->told.set_value(); };
  }
  void get() {
    told.get_future().get();
    if (waiter.problem) std::rethrow_exception(waiter.problem);
  }
};

using Many = std::vector<std::unique_ptr<Waits>>;

Many ask(Demand& demand, const std::string& name, size_t count) {
  Many many;
  for (size_t i = 0; i < count; ++i) {
    many.push_back(std::make_unique<Waits>());
    demand.ask(name, many.back()->waiter, 1'000);
  }
  return many;
}

void until(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

constexpr std::chrono::hours kLong{1};

}  // namespace

TEST_CASE("demand: one load for all who wait") {
  std::promise<void> go;
  std::shared_future<void> may_go = go.get_future();
  Calls calls([&](const std::string&, const Demand::Wanted&) { may_go.wait(); });
  Demand demand(calls, 4, kLong);
  Many first = ask(demand, "a", 50);
  until([&] { return calls.count == 1; });
  Many second = ask(demand, "a", 50);
  CHECK(demand.counts().waiting == 100);
  CHECK(demand.statuses().at("a").state == Demand::State::kLoading);
  go.set_value();
  for (const Many* many : {&first, &second})
    for (const auto& waits : *many) waits->get();
  CHECK(calls.count == 1);
  CHECK(demand.counts().loads == 1);
  CHECK(demand.counts().waiting == 0);
  CHECK(demand.statuses().empty());
}

TEST_CASE("demand: names are loaded beside each other, by no more threads than there may be") {
  std::atomic<int> now{0}, most{0};
  Calls calls([&](const std::string&, const Demand::Wanted&) {
    const int running = ++now;
    for (int seen = most; seen < running && !most.compare_exchange_weak(seen, running);) {
    }
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    --now;
  });
  Demand demand(calls, 3, kLong);
  Many all;
  for (int i = 0; i < 50; ++i)
    for (auto& waits : ask(demand, "m" + std::to_string(i), 2)) all.push_back(std::move(waits));
  for (const auto& waits : all) waits->get();
  CHECK(calls.count >= 50);
  CHECK(most <= 3);
}

TEST_CASE("demand: a failure is told to all, and remembered for a while") {
  Calls calls([](const std::string& name, const Demand::Wanted&) {
    SCONCE_CHECK(name != "bad", kCorruptPackage, "no package");
    SCONCE_CHECK(name != "late", kUnavailable, "not now");
  });
  Demand demand(calls, 1, kLong);
  for (const auto& waits : ask(demand, "bad", 3)) CHECK_THROWS_WITH_AS(waits->get(), "no package", Error);
  const int before = calls.count;
  Waits again;
  try {
    demand.ask("bad", again.waiter, 1);
    FAIL("no failure");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::kCorruptPackage);
    CHECK(std::string(e.what()) == "no package");
  }
  CHECK(calls.count == before);
  CHECK(demand.statuses().at("bad").state == Demand::State::kFailed);
  CHECK(demand.statuses().at("bad").reason == "no package");
  demand.forget_failure("bad");
  CHECK(demand.statuses().empty());
  demand.ask("bad", again.waiter, 1);
  CHECK_THROWS_AS(again.get(), Error);
  // What may be otherwise in a moment is tried again.
  for (int i = 0; i < 2; ++i)
    for (const auto& waits : ask(demand, "late", 1)) CHECK_THROWS_WITH_AS(waits->get(), "not now", Error);
  CHECK(!demand.statuses().contains("late"));
}

TEST_CASE("demand: a failure is forgotten in time") {
  Calls calls([](const std::string&, const Demand::Wanted&) { SCONCE_FAIL(kIo, "no file"); });
  Demand demand(calls, 1, std::chrono::nanoseconds(0));
  for (int i = 0; i < 3; ++i)
    for (const auto& waits : ask(demand, "a", 1)) CHECK_THROWS_WITH_AS(waits->get(), "no file", Error);
  CHECK(calls.count == 3);
  CHECK(demand.counts().failures == 3);
}

TEST_CASE("demand: only so many may wait for a name") {
  std::promise<void> go;
  std::shared_future<void> may_go = go.get_future();
  Calls calls([&](const std::string&, const Demand::Wanted&) { may_go.wait(); });
  Demand demand(calls, 1, kLong);
  Waits first, second, third;
  demand.ask("a", first.waiter, 2);
  demand.ask("a", second.waiter, 2);
  try {
    demand.ask("a", third.waiter, 2);
    FAIL("no failure");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::kQueueFull);
  }
  demand.ask("b", third.waiter, 2);
  go.set_value();
  for (Waits* waits : {&first, &second, &third}) waits->get();
}

TEST_CASE("demand: who left is not told, and what nobody waits for is not loaded") {
  std::promise<void> go;
  std::shared_future<void> may_go = go.get_future();
  std::atomic<bool> wanted_at_last{true}, looked{false};
  Calls calls([&](const std::string& name, const Demand::Wanted& wanted) {
    if (name != "a") return;
    CHECK(wanted());
    looked = true;
    may_go.wait();
    wanted_at_last = wanted();
  });
  Demand demand(calls, 1, kLong);
  Waits first, second, other;
  demand.ask("a", first.waiter, 9);
  demand.ask("a", second.waiter, 9);
  until([&] { return looked.load(); });
  demand.ask("b", other.waiter, 9);
  CHECK(demand.cancel(first.waiter));
  CHECK(demand.cancel(second.waiter));
  CHECK(!demand.cancel(second.waiter));
  CHECK(demand.cancel(other.waiter));
  go.set_value();
  Waits last;
  demand.ask("c", last.waiter, 9);
  last.get();
  CHECK(!wanted_at_last);
  CHECK(calls.count == 2);  // a and c
  CHECK(!demand.cancel(last.waiter));
}

TEST_CASE("demand: nobody loads what somebody else changes") {
  Calls calls([](const std::string&, const Demand::Wanted&) {});
  Demand demand(calls, 2, kLong);
  Waits waits;
  {
    const Demand::Turn turn(demand, "a");
    CHECK(!Demand::Turn::attempt(demand, "a").held());
    CHECK(Demand::Turn::attempt(demand, "b").held());
    demand.ask("a", waits.waiter, 1);
    for (const auto& others : ask(demand, "b", 1)) others->get();
    CHECK(calls.count == 1);
    CHECK(waits.told.get_future().wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
    waits.told = std::promise<void>();
  }
  waits.get();
  CHECK(calls.count == 2);
}

TEST_CASE("demand: a turn waits for the load") {
  std::promise<void> go;
  std::shared_future<void> may_go = go.get_future();
  std::atomic<bool> loaded{false};
  Calls calls([&](const std::string&, const Demand::Wanted&) {
    may_go.wait();
    loaded = true;
  });
  Demand demand(calls, 1, kLong);
  Waits waits;
  demand.ask("a", waits.waiter, 1);
  until([&] { return calls.count == 1; });
  auto turn = std::async(std::launch::async, [&] {
    const Demand::Turn own(demand, "a");
    return loaded.load();
  });
  go.set_value();
  CHECK(turn.get());
  waits.get();
}

TEST_CASE("demand: the end tells all who wait") {
  std::promise<void> begun;
  Calls calls([&](const std::string&, const Demand::Wanted& wanted) {
    begun.set_value();
    until([&] { return !wanted(); });
  });
  Demand demand(calls, 1, kLong);
  Waits loading, queued, late;
  demand.ask("a", loading.waiter, 1);
  begun.get_future().get();
  demand.ask("b", queued.waiter, 1);
  demand.stop();
  loading.get();
  CHECK_THROWS_WITH_AS(queued.get(), "the server is ending", Error);
  CHECK_THROWS_AS(demand.ask("c", late.waiter, 1), Error);
}

}  // namespace sconce::server
