#include "server/registry/lazy_load/load_queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sconce/check.h"

namespace sconce::server::registry {
namespace {

// Calls `work` for each load.
class Calls final : public LoadQueue::Loader {
 public:
  using Work = std::function<void(const std::string&, const LoadQueue::Wanted&)>;
  explicit Calls(Work work) : work_(std::move(work)) {}
  void load(const std::string& name, const LoadQueue::Wanted& wanted) override {
    ++count;
    work_(name, wanted);
  }
  std::atomic<int> count{0};

 private:
  const Work work_;
};

struct Waits {
  LoadQueue::Waiter waiter;
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

Many ask(LoadQueue& demand, const std::string& name, size_t count) {
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
constexpr uint64_t kHost = 1, kDevice = 2;  // kinds of room

}  // namespace

TEST_CASE("demand: one load for all who wait") {
  std::promise<void> go;
  std::shared_future<void> may_go = go.get_future();
  Calls calls([&](const std::string&, const LoadQueue::Wanted&) { may_go.wait(); });
  LoadQueue demand(calls, 4, {.remember = kLong});
  Many first = ask(demand, "a", 50);
  until([&] { return calls.count == 1; });
  Many second = ask(demand, "a", 50);
  CHECK(demand.counts().waiting == 100);
  CHECK(demand.statuses().at("a").state == LoadQueue::State::kLoading);
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
  Calls calls([&](const std::string&, const LoadQueue::Wanted&) {
    const int running = ++now;
    for (int seen = most; seen < running && !most.compare_exchange_weak(seen, running);) {
    }
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    --now;
  });
  LoadQueue demand(calls, 3, {.remember = kLong});
  Many all;
  for (int i = 0; i < 50; ++i)
    for (auto& waits : ask(demand, "m" + std::to_string(i), 2)) all.push_back(std::move(waits));
  for (const auto& waits : all) waits->get();
  CHECK(calls.count >= 50);
  CHECK(most <= 3);
}

TEST_CASE("demand: a failure is told to all, and remembered for a while") {
  std::atomic<bool> asked{false};  // all of them, before the first one is told
  Calls calls([&](const std::string& name, const LoadQueue::Wanted&) {
    until([&] { return asked.load(); });
    SCONCE_CHECK(name != "bad", kCorruptPackage, "no package");
    SCONCE_CHECK(name != "late", kUnavailable, "not now");
  });
  LoadQueue demand(calls, 1, {.remember = kLong});
  const Many bad = ask(demand, "bad", 3);
  asked = true;
  for (const auto& waits : bad) CHECK_THROWS_WITH_AS(waits->get(), "no package", Error);
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
  CHECK(demand.statuses().at("bad").state == LoadQueue::State::kFailed);
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
  Calls calls([](const std::string&, const LoadQueue::Wanted&) { SCONCE_FAIL(kIo, "no file"); });
  LoadQueue demand(calls, 1, {});
  for (int i = 0; i < 3; ++i)
    for (const auto& waits : ask(demand, "a", 1)) CHECK_THROWS_WITH_AS(waits->get(), "no file", Error);
  CHECK(calls.count == 3);
  CHECK(demand.counts().failures == 3);
}

TEST_CASE("demand: only so many may wait for a name") {
  std::promise<void> go;
  std::shared_future<void> may_go = go.get_future();
  Calls calls([&](const std::string&, const LoadQueue::Wanted&) { may_go.wait(); });
  LoadQueue demand(calls, 1, {.remember = kLong});
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
  Calls calls([&](const std::string& name, const LoadQueue::Wanted& wanted) {
    if (name != "a") return;
    CHECK(wanted());
    looked = true;
    may_go.wait();
    wanted_at_last = wanted();
  });
  LoadQueue demand(calls, 1, {.remember = kLong});
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
  Calls calls([](const std::string&, const LoadQueue::Wanted&) {});
  LoadQueue demand(calls, 2, {.remember = kLong});
  Waits waits;
  {
    const LoadQueue::LoadLock load_lock(demand, "a");
    CHECK(!LoadQueue::LoadLock::attempt(demand, "a").held());
    CHECK(LoadQueue::LoadLock::attempt(demand, "b").held());
    demand.ask("a", waits.waiter, 1);
    for (const auto& others : ask(demand, "b", 1)) others->get();
    CHECK(calls.count == 1);
    CHECK(waits.told.get_future().wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
    waits.told = std::promise<void>();
  }
  waits.get();
  CHECK(calls.count == 2);
}

TEST_CASE("demand: a LoadLock waits for the load") {
  std::promise<void> go;
  std::shared_future<void> may_go = go.get_future();
  std::atomic<bool> loaded{false};
  Calls calls([&](const std::string&, const LoadQueue::Wanted&) {
    may_go.wait();
    loaded = true;
  });
  LoadQueue demand(calls, 1, {.remember = kLong});
  Waits waits;
  demand.ask("a", waits.waiter, 1);
  until([&] { return calls.count == 1; });
  auto load_lock = std::async(std::launch::async, [&] {
    const LoadQueue::LoadLock own(demand, "a");
    return loaded.load();
  });
  go.set_value();
  CHECK(load_lock.get());
  waits.get();
}

TEST_CASE("demand: the end tells all who wait") {
  std::promise<void> begun;
  Calls calls([&](const std::string&, const LoadQueue::Wanted& wanted) {
    begun.set_value();
    until([&] { return !wanted(); });
  });
  LoadQueue demand(calls, 1, {.remember = kLong});
  Waits loading, queued, late;
  demand.ask("a", loading.waiter, 1);
  begun.get_future().get();
  demand.ask("b", queued.waiter, 1);
  demand.stop();
  loading.get();
  CHECK_THROWS_WITH_AS(queued.get(), "the server is ending", Error);
  CHECK_THROWS_AS(demand.ask("c", late.waiter, 1), Error);
}

// A clock that the test moves. Pauses are none, so only retry(), look_again() and the clock decide when a try comes.
struct Patience {
  std::atomic<int64_t> seconds{1'000};
  LoadQueue::Times times() {
    const std::chrono::hours never{1'000};
    return {
        .patience = std::chrono::seconds(10), .look_again = never, .pause = std::chrono::nanoseconds(0), .now = [this] {
          return LoadQueue::Clock::time_point(std::chrono::seconds(seconds));
        }};
  }
};

TEST_CASE("demand: who waits for room holds no thread") {
  Patience patience;
  std::atomic<bool> room{false};
  std::atomic<int> large{0};
  Calls calls([&](const std::string& name, const LoadQueue::Wanted& wanted) {
    if (!name.starts_with("large")) return;
    ++large;
    if (room) return;
    wanted.wait_for_room(kHost);
    SCONCE_FAIL(kUnavailable, "no room");
  });
  LoadQueue demand(calls, 1, patience.times());
  Waits one, two, small;
  demand.ask("large1", one.waiter, 9);
  demand.ask("large2", two.waiter, 9);
  until([&] { return demand.counts().in_line == 2; });
  demand.ask("small", small.waiter, 9);
  small.get();  // the only thread is free
  CHECK(demand.statuses().at("large1").state == LoadQueue::State::kLoading);
  CHECK(demand.counts().waiting == 2);
  CHECK(demand.counts().failures == 0);
  room = true;
  demand.retry();
  one.get();
  two.get();
  CHECK(demand.statuses().empty());
  CHECK(demand.counts().loads == 3);
}

TEST_CASE("demand: room is given in the order in which loads came") {
  Patience patience;
  std::mutex mutex;
  std::vector<std::string> order;  // of the tries
  std::atomic<int> room{0}, tries{0};
  Calls calls([&](const std::string& name, const LoadQueue::Wanted& wanted) {
    const bool first = wanted.is_first_in_line(kHost);
    {
      const std::lock_guard lock(mutex);
      order.push_back(name + (first ? " first" : ""));
    }
    ++tries;
    // Only the first one in line may take what is not free yet.
    if (first && room > 0) {
      --room;
      return;
    }
    wanted.wait_for_room(kHost);
    SCONCE_FAIL(kUnavailable, "no room");
  });
  LoadQueue demand(calls, 1, patience.times());
  Waits a, b, c;
  demand.ask("a", a.waiter, 9);
  until([&] { return demand.counts().in_line == 1; });
  demand.ask("b", b.waiter, 9);
  demand.ask("c", c.waiter, 9);
  until([&] { return demand.counts().in_line == 3; });
  room = 1;
  demand.look_again();
  a.get();
  // The next one becomes the first, and is tried without being told.
  until([&] { return tries == 5 && demand.counts().in_line == 2; });
  room = 2;
  demand.look_again();
  b.get();
  c.get();
  const std::lock_guard lock(mutex);
  CHECK(order == std::vector<std::string>{"a first", "b", "c", "a first", "b first", "b first", "c first"});
}

TEST_CASE("demand: who waits for one kind of room hinders nobody who lacks another") {
  Patience patience;
  std::mutex mutex;
  std::vector<std::string> first;  // loads that were the first ones in a try
  Calls calls([&](const std::string& name, const LoadQueue::Wanted& wanted) {
    const uint64_t kinds = name == "both" ? kHost | kDevice : name.starts_with("host") ? kHost : kDevice;
    if (wanted.is_first_in_line(kinds)) {
      const std::lock_guard lock(mutex);
      first.push_back(name);
    }
    wanted.wait_for_room(kinds);
    SCONCE_FAIL(kUnavailable, "no room");
  });
  Many waits;
  LoadQueue demand(calls, 1, patience.times());
  for (const char* const name : {"host1", "device1", "host2", "both", "device2"}) {
    waits.push_back(std::make_unique<Waits>());
    demand.ask(name, waits.back()->waiter, 9);
    until([&] { return demand.counts().in_line == static_cast<int64_t>(waits.size()); });
  }
  {
    const std::lock_guard lock(mutex);
    CHECK(first == std::vector<std::string>{"host1", "device1"});
    first.clear();
  }
  // Those behind it: "host2" is the first one for the host now, and "both" still is not.
  CHECK(demand.cancel(waits[0]->waiter));
  until([&] { return calls.count == 6 && demand.counts().in_line == 4; });
  CHECK(demand.cancel(waits[2]->waiter));
  until([&] { return demand.counts().in_line == 3; });
  CHECK(demand.cancel(waits[1]->waiter));
  until([&] { return calls.count == 7 && demand.counts().in_line == 2; });
  const std::lock_guard lock(mutex);
  CHECK(first == std::vector<std::string>{"host2", "both"});
}

TEST_CASE("demand: a load by hand waits in the same line") {
  Patience patience;
  std::mutex mutex;
  std::vector<std::string> first;
  std::atomic<bool> room{false};
  const auto attempt = [&](const std::string& name, const LoadQueue::Wanted& wanted) {
    CHECK(wanted());
    if (wanted.is_first_in_line(kHost)) {
      const std::lock_guard lock(mutex);
      first.push_back(name);
      if (room.exchange(false)) return;
    }
    wanted.wait_for_room(kHost);
    SCONCE_FAIL(kUnavailable, "no room for ", name);
  };
  Calls calls(attempt);
  LoadQueue demand(calls, 1, patience.times());
  Waits before, behind;
  demand.ask("before", before.waiter, 9);
  until([&] { return demand.counts().in_line == 1; });
  std::atomic<int> tries{0};
  std::thread hand([&] {
    const LoadQueue::LoadLock load_lock(demand, "hand");
    load_lock.with_room([&](const LoadQueue::Wanted& wanted) {
      ++tries;
      attempt("hand", wanted);
    });
  });
  until([&] { return demand.counts().in_line == 2; });
  demand.ask("behind", behind.waiter, 9);
  until([&] { return demand.counts().in_line == 3; });
  CHECK(tries == 1);
  room = true;
  demand.retry();
  before.get();
  until([&] { return tries >= 2; });
  room = true;
  demand.look_again();
  hand.join();
  // One whose patience is over throws what its last try threw, and nobody is behind it any more.
  std::thread late([&] {
    const LoadQueue::LoadLock load_lock(demand, "late");
    CHECK_THROWS_WITH_AS(load_lock.with_room([&](const LoadQueue::Wanted& wanted) { attempt("late", wanted); }),
                         "no room for late", Error);
  });
  until([&] { return demand.counts().in_line == 2; });
  patience.seconds += 10;
  demand.retry();
  late.join();
  CHECK_THROWS_AS(behind.get(), Error);
  CHECK(demand.statuses().empty());
  const std::lock_guard lock(mutex);
  CHECK(std::find(first.begin(), first.end(), "hand") != first.end());
}

TEST_CASE("demand: a load by hand that waits ends with the server, and its requests too") {
  Patience patience;
  Calls calls([](const std::string&, const LoadQueue::Wanted&) {});
  LoadQueue demand(calls, 1, patience.times());
  std::thread hand([&] {
    const LoadQueue::LoadLock load_lock(demand, "a");
    CHECK_THROWS_AS(load_lock.with_room([](const LoadQueue::Wanted& wanted) {
      SCONCE_CHECK(wanted(), kCancelled, "the server is ending");
      wanted.wait_for_room(kHost);
      SCONCE_FAIL(kUnavailable, "no room");
    }),
                    Error);
  });
  until([&] { return demand.counts().in_line == 1; });
  Waits waits;
  demand.ask("a", waits.waiter, 9);
  demand.stop();
  hand.join();
  CHECK_THROWS_AS(waits.get(), Error);
}

TEST_CASE("demand: patience for room ends, and the last error is told") {
  Patience patience;
  Calls calls([&](const std::string&, const LoadQueue::Wanted& wanted) {
    wanted.wait_for_room(kHost);
    SCONCE_FAIL(kUnavailable, "no room");
  });
  LoadQueue demand(calls, 1, patience.times());
  Waits waits;
  demand.ask("a", waits.waiter, 9);
  until([&] { return demand.counts().in_line == 1; });
  patience.seconds += 9;
  demand.retry();
  until([&] { return calls.count == 2 && demand.counts().in_line == 1; });
  patience.seconds += 1;
  demand.retry();
  CHECK_THROWS_WITH_AS(waits.get(), "no room", Error);
  CHECK(calls.count == 3);
  CHECK(demand.counts().failures == 1);
  CHECK(demand.statuses().empty());
}

TEST_CASE("demand: what a try keeps is there for the next one, and goes when nobody waits") {
  Patience patience;
  std::weak_ptr<int> seen;
  std::atomic<bool> same{false};
  Calls calls([&](const std::string&, const LoadQueue::Wanted& wanted) {
    if (const auto before = wanted.loader_data()) {
      same = before == seen.lock();
    } else {
      auto number = std::make_shared<int>(1);
      seen = number;
      wanted.loader_data() = number;
    }
    wanted.wait_for_room(kHost);
    SCONCE_FAIL(kUnavailable, "no room");
  });
  LoadQueue demand(calls, 1, patience.times());
  Waits waits;
  demand.ask("a", waits.waiter, 9);
  until([&] { return demand.counts().in_line == 1; });
  demand.retry();
  until([&] { return same && demand.counts().in_line == 1; });
  CHECK(!seen.expired());
  CHECK(demand.cancel(waits.waiter));
  CHECK(seen.expired());
  CHECK(demand.statuses().empty());
}

TEST_CASE("demand: who comes while the last one leaves gets its load") {
  std::promise<void> left;
  std::shared_future<void> all_left = left.get_future();
  std::promise<void> saw;
  std::promise<void> joined;
  std::shared_future<void> has_joined = joined.get_future();
  std::atomic<int> tries{0};
  Calls calls([&](const std::string& name, const LoadQueue::Wanted& wanted) {
    if (++tries > 1) return;
    all_left.wait();
    const bool leaves = !wanted();
    saw.set_value();
    has_joined.wait();
    SCONCE_CHECK(!leaves, kCancelled, "nobody waits for model '", name, "' any more");
  });
  LoadQueue demand(calls, 1, {.remember = kLong});
  Waits first, second;
  demand.ask("a", first.waiter, 9);
  until([&] { return tries == 1; });
  CHECK(demand.cancel(first.waiter));
  left.set_value();
  saw.get_future().get();
  demand.ask("a", second.waiter, 9);
  joined.set_value();
  second.get();
  CHECK(tries == 2);
}

TEST_CASE("demand: others may change what waits for room, and then it is tried again") {
  Patience patience;
  std::atomic<bool> room{false};
  Calls calls([&](const std::string&, const LoadQueue::Wanted& wanted) {
    if (room) return;
    wanted.wait_for_room(kHost);
    SCONCE_FAIL(kUnavailable, "no room");
  });
  LoadQueue demand(calls, 1, patience.times());
  Waits waits;
  demand.ask("a", waits.waiter, 9);
  until([&] { return demand.counts().in_line == 1; });
  {
    const LoadQueue::LoadLock load_lock(demand, "a");
    room = true;
    demand.retry();
    CHECK(calls.count == 1);
  }
  waits.get();
  CHECK(calls.count == 2);
}

}  // namespace sconce::server::registry
