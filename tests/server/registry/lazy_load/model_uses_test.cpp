#include "server/registry/lazy_load/model_uses.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

namespace sconce::server::registry {

TEST_CASE("model uses: what is used is not retired, and what is retired is not used") {
  ModelUses uses{ModelUses::Clock::time_point(std::chrono::seconds(1))};
  const ModelUses::Clock::time_point later(std::chrono::seconds(5));
  CHECK(!uses.in_use());
  CHECK(uses.enter(3, later));
  CHECK(uses.last_use() == later);
  CHECK(!uses.retire());
  CHECK(uses.enter(3 + ModelUses::kPlaces, later));
  uses.leave(3);
  CHECK(!uses.retire());
  uses.leave(3);
  CHECK(uses.retire());
  CHECK(!uses.enter(0, later));
  CHECK(!uses.in_use());
  uses.restore();
  CHECK(uses.enter(0, later));
}

TEST_CASE("model uses: the end of a use is told to those who wait for room, once") {
  const auto bell = std::make_shared<RoomBell>();
  int rings = 0;
  bell->on_ring([&] { ++rings; });
  ModelUses uses{ModelUses::Clock::now(), bell};
  const auto use = [&] {
    CHECK(uses.enter(0, ModelUses::Clock::now()));
    uses.leave(0);
  };
  use();
  CHECK(rings == 0);
  bell->await();
  CHECK(uses.enter(0, ModelUses::Clock::now()));
  CHECK(rings == 0);
  uses.leave(0);
  CHECK(rings == 1);
  use();
  CHECK(rings == 1);
  bell->await();
  bell->on_ring({});
  use();
  CHECK(rings == 1);
}

TEST_CASE("model uses: of two that meet, one gives way") {
  ModelUses uses{ModelUses::Clock::now()};
  std::atomic<int> inside{0}, wrong{0}, entered{0};
  std::atomic<bool> retired{false}, over{false};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      while (!over) {
        if (!uses.enter(i, ModelUses::Clock::now())) continue;
        ++inside;
        ++entered;
        if (retired) ++wrong;
        --inside;
        uses.leave(i);
      }
    });
  for (int done = 0; done < 200;) {
    if (!uses.retire()) {
      std::this_thread::yield();
      continue;
    }
    retired = true;
    if (inside != 0) ++wrong;
    std::this_thread::yield();
    retired = false;
    uses.restore();
    ++done;
  }
  const int before = entered;
  while (entered == before) std::this_thread::yield();
  over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace sconce::server::registry
