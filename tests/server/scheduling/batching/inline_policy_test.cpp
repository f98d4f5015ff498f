#include "server/scheduling/batching/inline_policy.h"

#include "doctest/doctest.h"

namespace sconce::server::scheduling {

using namespace std::chrono_literals;

namespace {

// How many of `count` requests go to the queue, if one costs `queued` there.
int queued_of(InlinePolicy& policy, int count, std::chrono::nanoseconds single, std::chrono::nanoseconds queued) {
  int result = 0;
  for (int i = 0; i < count; ++i) {
    if (policy.run_inline()) {
      policy.ran(single, 1, false);
    } else {
      ++result;
      // Requests share runs of four; one of sixteen runs alone.
      if (result % 16 == 0) policy.ran(single, 1, true);
      if (result % 4 == 0) policy.ran(4 * queued, 4, true);
    }
  }
  return result;
}

InlinePolicy& tried(InlinePolicy& policy, std::chrono::nanoseconds single) {
  for (int i = 0; i < 8; ++i) {
    CHECK_FALSE(policy.run_inline());  // nothing is known yet
    policy.ran(single, 1, true);
  }
  return policy;
}

}  // namespace

TEST_CASE("inline policy: quick runs happen where the request was read, slow ones do not") {
  InlinePolicy quick(200us, false), slow(200us, false), never(0us, false);
  CHECK(queued_of(tried(quick, 100us), 1000, 100us, 1us) == 0);
  CHECK(queued_of(tried(slow, 300us), 1000, 300us, 1us) == 1000);
  CHECK(queued_of(tried(never, 1us), 1000, 1us, 1us) == 1000);
}

TEST_CASE("inline policy: what is much larger than what is known to be quick is a lane's to do") {
  for (const size_t usual : {size_t{16}, size_t{40'000}}) {
    InlinePolicy policy(200us, false);
    for (int i = 0; i < 8; ++i) policy.ran(50us, 1, true, usual);
    CHECK(policy.run_inline(usual));
    CHECK(policy.run_inline(usual * 4));
    CHECK(policy.run_inline(4096));
    CHECK_FALSE(policy.run_inline(1 << 20));
    CHECK_FALSE(policy.run_inline(size_t{1} << 40));
    // If requests stay larger but are no slower, the policy takes their size for the usual one.
    for (int i = 0; i < 100; ++i) policy.ran(50us, 1, true, 1 << 20);
    CHECK(policy.run_inline(1 << 20));
  }
}

TEST_CASE("inline policy: runs that take less than the queue never go there, batches or not") {
  InlinePolicy policy(200us, true);
  CHECK(queued_of(tried(policy, 2us), 5000, 2us, 0us) == 0);
}

TEST_CASE("inline policy: where sharing runs pays, requests stay in the queue") {
  InlinePolicy policy(200us, true);
  CHECK(queued_of(tried(policy, 100us), 10000, 100us, 10us) == 10000);
}

TEST_CASE("inline policy: where sharing runs does not pay, tries become rare") {
  InlinePolicy policy(200us, true);
  tried(policy, 100us);
  const int first = queued_of(policy, 2000, 100us, 100us);
  CHECK(first >= 64);
  queued_of(policy, 30000, 100us, 100us);
  CHECK(queued_of(policy, 30000, 100us, 100us) <= 4 * 64);
}

TEST_CASE("inline policy: when sharing begins to pay, it is found out") {
  InlinePolicy policy(200us, true);
  queued_of(tried(policy, 100us), 30000, 100us, 100us);
  queued_of(policy, 9000, 100us, 10us);
  CHECK(queued_of(policy, 10000, 100us, 10us) == 10000);
  queued_of(policy, 2000, 100us, 100us);
  CHECK(queued_of(policy, 30000, 100us, 100us) < 2000);
}

TEST_CASE("inline policy: when sharing ends, requests leave the queue") {
  InlinePolicy policy(200us, true);
  CHECK(queued_of(tried(policy, 100us), 10000, 100us, 10us) == 10000);
  policy.end_sharing();
  CHECK(queued_of(policy, 10000, 100us, 10us) == 0);
}

}  // namespace sconce::server::scheduling
