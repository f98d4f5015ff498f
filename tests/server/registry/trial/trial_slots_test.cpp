#include "server/registry/trial/trial_slots.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace sconce::server::registry {
namespace {

bool readable(int fd) {
  pollfd event{fd, POLLIN, 0};
  return ::poll(&event, 1, 0) == 1;
}

}  // namespace

TEST_CASE("trial slots: no more at a time than there are, and each in the end") {
  TrialSlots slots(2);
  std::atomic<int> now{0}, most{0}, had{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        if (!slots.take()) return;
        const TrialSlots::Slot slot(slots);
        const int here = ++now;
        for (int seen = most; seen < here && !most.compare_exchange_weak(seen, here);) {
        }
        ++had;
        --now;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(most <= 2);
  CHECK(had == 800);
}

TEST_CASE("trial slots: who waits is told that the server ends") {
  TrialSlots slots(1);
  REQUIRE(slots.take());
  std::optional<TrialSlots::Slot> slot(std::in_place, slots);
  CHECK_FALSE(readable(slots.descriptor()));
  std::atomic<bool> got{true};
  std::thread waiting([&] { got = slots.take(); });
  slots.stop();
  waiting.join();
  CHECK_FALSE(got);
  CHECK(readable(slots.descriptor()));
  slot.reset();
  CHECK_FALSE(slots.take());
}

}  // namespace sconce::server::registry
