#include "server/support/memory/request_budget.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "sconce/error.h"
#include "server/support/memory/request_memory.h"
#include "tests/errors.h"

namespace sconce::server {
namespace {

constexpr size_t kMiB = 1024 * 1024;

}  // namespace

TEST_CASE("request budget: a share goes back") {
  RequestBudget budget(10 * kMiB);
  {
    BudgetShare share;
    share.take(budget, 6 * kMiB, "an answer");
    CHECK(budget.used() == 6 * kMiB);
    share.take(budget, 7 * kMiB, "an answer");  // replaces the 6 MiB
    CHECK(budget.used() == 7 * kMiB);
    BudgetShare other;
    CHECK(code_of([&] { other.take(budget, 4 * kMiB, "an answer"); }) == ErrorCode::kUnavailable);
    CHECK(code_of([&] { other.take(budget, 11 * kMiB, "an answer"); }) == ErrorCode::kTooLarge);
    CHECK(budget.used() == 7 * kMiB);
    share.give_back();
    share.give_back();
    CHECK(budget.used() == 0);
    other.take(budget, 4 * kMiB, "an answer");
  }
  CHECK(budget.used() == 0);
}

TEST_CASE("request budget: what others have is not there, what is more than all never will be") {
  RequestBudget budget(100);
  budget.take(60);
  CHECK(budget.is_tight());
  CHECK(code_of([&] { budget.take(41); }) == ErrorCode::kUnavailable);
  CHECK(code_of([&] { budget.check(41); }) == ErrorCode::kUnavailable);
  CHECK(code_of([&] { budget.take(101); }) == ErrorCode::kTooLarge);
  CHECK(code_of([&] { budget.check(UINT64_MAX); }) == ErrorCode::kTooLarge);
  budget.take(40);
  CHECK(budget.used() == 100);
  budget.give(60);
  CHECK_FALSE(budget.is_tight());
  budget.check(60);
  CHECK(budget.used() == 40);
}

TEST_CASE("request budget: buffers count until the last that holds their bytes lets go") {
  RequestBudget budget(64 * kMiB);
  StoragePtr kept;
  {
    BodyBuffer body(&budget);
    body.prepare(10 * kMiB, 0);
    CHECK(budget.used() <= kMiB / 8);  // announced bytes count when they arrive
    while (body.size() < 10 * kMiB) {
      const size_t room = body.make_room(10 * kMiB);
      REQUIRE(room > 0);
      body.commit(room);
      CHECK(budget.used() <= std::max(5 * body.size(), 2 * kMiB));
    }
    CHECK(budget.used() == 10 * kMiB);
    // A body grows in place, without room for a second copy.
    RequestBudget narrow(3 * kMiB);
    BodyBuffer all(&narrow);
    all.prepare(3 * kMiB, 0);
    while (all.size() < 3 * kMiB) all.commit(all.make_room(3 * kMiB));
    CHECK(narrow.used() == 3 * kMiB);
    kept = body.storage();
    body.trim(kMiB);
    CHECK(budget.used() == 10 * kMiB);  // `kept` still holds the memory
    kept = {};
    CHECK(budget.used() == 0);
    body.prepare(20, 0);
    body.append("x", 1);
    TensorScratch scratch(&budget);
    const uint64_t before = budget.used();
    (void)scratch.allocate(5 * kMiB);
    CHECK(budget.used() == before + 5 * kMiB);
    CHECK(code_of([&] { (void)scratch.allocate(60 * kMiB); }) == ErrorCode::kUnavailable);
    CHECK(budget.used() == before + 5 * kMiB);
    scratch.reset();
    scratch.trim(kMiB);
    CHECK(budget.used() == before);
  }
  CHECK(budget.used() == 0);
}

TEST_CASE("request budget: what came stays as it is when a body grows, wherever its tensors begin") {
  for (const size_t aligned_at : {0, 1, 77}) {
    BodyBuffer body;
    const size_t all = 3 * kMiB + 17;
    body.prepare(all, aligned_at);
    for (size_t i = 0; body.size() < all;) {
      const size_t room = std::min<size_t>(body.make_room(all), 100'003);
      for (size_t k = 0; k < room; ++k) body.end()[k] = static_cast<std::byte>((i + k) * 7 % 251);
      body.commit(room);
      i += room;
    }
    REQUIRE(body.size() == all);
    CHECK(reinterpret_cast<uintptr_t>(body.begin() + aligned_at) % kTensorAlignment == 0);
    bool same = true;
    for (size_t i = 0; i < all; ++i) same = same && body.begin()[i] == static_cast<std::byte>(i * 7 % 251);
    CHECK(same);
  }
}

TEST_CASE("request budget: small blocks count while many connections are open, and may use a quarter more") {
  RequestBudget budget(1 * kMiB);
  constexpr size_t kSmall = 16 * 1024;
  {
    BodyBuffer uncounted(&budget);
    uncounted.prepare(100, 0);
    CHECK(budget.used() == 0);
    budget.count_small(true);
    BodyBuffer counted(&budget);
    counted.prepare(100, 0);
    CHECK(budget.used() == kSmall);
    // What was not counted is not given back either.
    budget.count_small(false);
  }
  CHECK(budget.used() == 0);
  budget.count_small(true);
  BudgetShare large;
  large.take(budget, kMiB, "an answer");
  BudgetShare small;
  CHECK(small.take_small(budget, kSmall));
  CHECK(budget.used() == kMiB + kSmall);
  BudgetShare others;
  CHECK(others.take_small(budget, kMiB / 4 - kSmall));
  BudgetShare late;
  CHECK_FALSE(late.take_small(budget, 1));
  BodyBuffer body(&budget);
  CHECK(code_of([&] { body.prepare(100, 0); }) == ErrorCode::kUnavailable);
  others.give_back();
  CHECK(late.take_small(budget, 1));
}

}  // namespace sconce::server
