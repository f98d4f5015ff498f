#include "src/device/cpu_arena.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <thread>
#include <vector>

using namespace sconce;

TEST_CASE("arena: a block comes back to the next request of its size") {
  auto arena = CpuArena::create();
  CpuArena::Scope scope(arena.get());
  void* first;
  {
    auto storage = allocate_cpu(1000);
    first = storage->data();
    CHECK(reinterpret_cast<uintptr_t>(first) % 64 == 0);
  }
  CHECK(allocate_cpu(1001)->data() == first);
  CHECK(arena->system_allocations() == 1);
  CHECK(arena->live_bytes() == 0);
}

TEST_CASE("arena: blocks freed elsewhere come back, and outlive the arena") {
  auto arena = CpuArena::create();
  StoragePtr late;
  {
    CpuArena::Scope scope(arena.get());
    auto storage = allocate_cpu(5000);
    late = allocate_cpu(10);
    std::thread([moved = std::move(storage)] {}).join();
    auto again = allocate_cpu(5000);
    CHECK(arena->system_allocations() == 2);
  }
  arena.reset();
  *static_cast<char*>(late->data()) = 1;
}

TEST_CASE("arena: what was once in use is given back when it is not any more") {
  const CpuArena::Ptr arena = CpuArena::create();
  const CpuArena::Scope scope(arena.get());
  const auto use_large = [&] {
    std::vector<StoragePtr> large;
    for (int i = 0; i < 8; ++i) large.push_back(arena->allocate(1 << 20));
  };
  use_large();
  arena->decay();  // they were needed until now
  int64_t taken = arena->system_allocations();
  use_large();
  CHECK(arena->system_allocations() == taken);  // kept
  arena->decay();
  StoragePtr small = arena->allocate(1 << 10);
  small = StoragePtr();
  arena->decay();  // no more than one small one was
  taken = arena->system_allocations();
  use_large();
  CHECK(arena->system_allocations() == taken + 8);  // given back
  arena->decay();
  small = arena->allocate(1 << 10);
  small = StoragePtr();
  arena->decay();
  small = arena->allocate(1 << 10);
  small = StoragePtr();
  taken = arena->system_allocations();
  for (int i = 0; i < 10; ++i) {
    small = arena->allocate(1 << 10);
    small = StoragePtr();
    arena->decay();
  }
  CHECK(arena->system_allocations() <= taken + 1);  // what is in use all the time stays
  arena->decay();
  taken = arena->system_allocations();
  small = arena->allocate(1 << 10);
  CHECK(arena->system_allocations() == taken + 1);  // nothing was in use, so nothing was kept
}

TEST_CASE("arena: a run whose parts need different sizes asks the system once, and other sizes go") {
  const CpuArena::Ptr arena = CpuArena::create();
  // One buffer at a time: what is cached is soon more than what is ever in use.
  const auto run = [&](size_t first, size_t last) {
    const CpuArena::Scope scope(arena.get());
    for (size_t bytes = first; bytes <= last; bytes *= 2) allocate_cpu(bytes);
  };
  run(1 << 12, 1 << 20);
  const int64_t taken = arena->system_allocations();
  CHECK(taken == 9);
  for (int i = 0; i < 5; ++i) run(1 << 12, 1 << 20);
  CHECK(arena->system_allocations() == taken);
  // Other shapes, twice, as the last two runs' are kept: then the old ones are not there any more.
  for (int i = 0; i < 2; ++i) run(5 << 12, 5 << 18);
  run(3 << 12, 3 << 20);
  const int64_t before = arena->system_allocations();
  run(1 << 12, 1 << 20);
  CHECK(arena->system_allocations() == before + 9);
}

TEST_CASE("arena: every size class holds what was asked") {
  auto arena = CpuArena::create();
  for (size_t bytes = 1; bytes < (size_t{1} << 22); bytes = bytes * 9 / 8 + 1) {
    auto storage = arena->allocate(bytes);
    static_cast<char*>(storage->data())[bytes - 1] = 1;
    CHECK(storage->bytes() == bytes);
  }
}

TEST_CASE("arena: a storage with other bytes keeps its block until it goes") {
  auto arena = CpuArena::create();
  CpuArena::Scope scope(arena.get());
  int released[2] = {0, 0};
  char bytes[2] = {1, 2};
  const auto count = [](void*, size_t, void* context) noexcept { ++*static_cast<int*>(context); };
  auto storage = allocate_cpu(100);
  void* const first = storage->data();
  storage->reset(&bytes[0], 1, count, &released[0]);
  CHECK(arena->live_bytes() > 0);
  CHECK(storage->data() == &bytes[0]);
  storage->reset(&bytes[1], 1, count, &released[1]);
  CHECK(released[0] == 1);
  CHECK(released[1] == 0);
  CHECK(allocate_cpu(100)->data() != first);
  storage = StoragePtr();
  CHECK(released[0] == 1);
  CHECK(released[1] == 1);
  CHECK(arena->live_bytes() == 0);
  storage = allocate_cpu(100);
  storage->reset(nullptr, 0, nullptr, nullptr);
  storage = StoragePtr();
  CHECK(arena->live_bytes() == 0);
}
