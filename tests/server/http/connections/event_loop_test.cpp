#include "server/http/connections/event_loop.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

namespace sconce::server::http {

using namespace std::chrono_literals;

namespace {

using Clock = EventLoop::Clock;

struct Watched final : EventLoop::Watcher {
  void ready(uint32_t events) noexcept override { seen |= events; }
  uint32_t seen = 0;
};

// A loop that watches one end of a connection.
struct Watching {
  EventLoop loop;
  Watched here;
  Descriptor end, other;

  Watching() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    end = Descriptor(ends[0]);
    other = Descriptor(ends[1]);
  }
  // What a look without waiting, or a wait, tells of the watched end.
  uint32_t look(Clock::duration time = {}) {
    const Clock::time_point now = Clock::now();
    here.seen = 0;
    for (const EventLoop::Event& event : loop.wait(now + time, now)) event.watcher->ready(event.events);
    return here.seen;
  }
  void send() const { REQUIRE(::send(other.get(), "x", 1, 0) == 1); }
  void take() const {
    char byte;
    REQUIRE(::recv(end.get(), &byte, 1, 0) == 1);
  }
};

}  // namespace

TEST_CASE("event loop: nothing is told of a descriptor that is forgotten, though another process has it too") {
  Watching one;
  one.loop.watch(one.end.get(), one.here);
  CHECK(one.look() == EPOLLOUT);
  // As in a child between fork() and exec().
  const Descriptor in_a_child(::dup(one.end.get()));
  one.loop.forget(one.end.get());
  one.end = Descriptor();
  one.send();
  CHECK(one.look() == 0);
  one.other = Descriptor();
  CHECK(one.look() == 0);
}

TEST_CASE("event loop: a descriptor is told of once for each arrival, without being registered anew") {
  Watching one;
  one.loop.watch(one.end.get(), one.here);
  CHECK(one.look() == EPOLLOUT);
  CHECK(one.look() == 0);
  for (int i = 0; i < 3; ++i) {
    one.send();
    CHECK((one.look() & EPOLLIN) != 0);
    CHECK(one.look() == 0);  // though the byte is still there
    one.take();
  }
  ::shutdown(one.other.get(), SHUT_WR);
  CHECK((one.look() & EPOLLRDHUP) != 0);
  one.end = Descriptor();
  ::shutdown(one.other.get(), SHUT_RDWR);
  CHECK(one.look() == 0);
}

TEST_CASE("event loop: a descriptor is told of once, until that is asked for again") {
  Watching one;
  one.send();
  one.loop.watch_once(one.end.get(), one.here);
  CHECK((one.look() & EPOLLIN) != 0);
  CHECK(one.look() == 0);
  one.send();
  CHECK(one.look() == 0);
  one.loop.watch_once(one.end.get(), one.here);  // what came meanwhile counts
  CHECK((one.look() & EPOLLIN) != 0);
}

TEST_CASE("event loop: waits until the time, and not after it") {
  Watching one;
  const Clock::time_point begun = Clock::now();
  CHECK(one.look(20ms) == 0);
  CHECK(Clock::now() - begun >= 20ms);
  CHECK(one.loop.wait(Clock::time_point::min(), Clock::now()).empty());
}

TEST_CASE("event loop: a call before the wait ends it, and one call ends one wait") {
  EventLoop loop;
  loop.wake();
  loop.wake();
  CHECK(loop.wait(Clock::time_point::max(), Clock::now()).empty());
  const Clock::time_point begun = Clock::now();
  CHECK(loop.wait(begun + 20ms, begun).empty());
  CHECK(Clock::now() - begun >= 20ms);
}

TEST_CASE("event loop: another thread ends a wait, as often as it calls") {
  EventLoop loop;
  constexpr int kCalls = 2000;
  int done = 0;
  std::thread other([&] {
    for (int i = 0; i < kCalls; ++i) loop.call([&] { ++done; });
  });
  while (done < kCalls) {
    CHECK(loop.wait(Clock::time_point::max(), Clock::now()).empty());
    loop.do_work();
  }
  other.join();
  CHECK(done == kCalls);
}

TEST_CASE("event loop: work is done in order, and what one throws loses nothing of the rest") {
  EventLoop loop;
  std::string done;
  loop.call([&] { done += 'a'; });
  loop.call([] { throw std::runtime_error("b"); });
  loop.call([&] {
    done += 'c';
    loop.call([&] { done += 'd'; });
  });
  CHECK_THROWS_AS(loop.do_work(), std::runtime_error);
  CHECK(done == "a");
  loop.do_work();
  CHECK(done == "ac");
  loop.do_work();
  CHECK(done == "acd");
}

TEST_CASE("event loop: work that was not executed is destroyed on request, and may call the loop then") {
  EventLoop loop;
  int destroyed = 0;
  struct Work {
    EventLoop& loop;
    int& destroyed;
    Work(EventLoop& loop, int& destroyed) : loop(loop), destroyed(destroyed) {}
    ~Work() {
      ++destroyed;
      loop.wake();
    }
  };
  for (int i = 0; i < 2; ++i) {
    auto work = std::make_shared<Work>(loop, destroyed);
    loop.call([work] { FAIL("executed"); });
  }
  loop.drop_work();
  CHECK(destroyed == 2);
  loop.do_work();
}

}  // namespace sconce::server::http
