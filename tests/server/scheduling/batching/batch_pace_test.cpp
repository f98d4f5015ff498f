#include "server/scheduling/batching/batch_pace.h"

#include "doctest/doctest.h"

namespace sconce::server::scheduling {

using namespace std::chrono_literals;

TEST_CASE("batch pace: nothing waits before runs of different sizes were seen") {
  BatchPace pace;
  CHECK(pace.delay() == 0ns);
  CHECK(pace.enough() == 1);
  for (int i = 0; i < 100; ++i) pace.ran(1, 1, 100us, 30);
  CHECK(pace.delay() == 0ns);
}

TEST_CASE("batch pace: half of what a run costs besides its rows") {
  BatchPace pace;
  for (int i = 0; i < 100; ++i) {
    const int64_t rows = 1 + i % 8;
    pace.ran(static_cast<size_t>(rows), rows, 80us + rows * 5us, 0);
  }
  CHECK(pace.delay() > 39us);
  CHECK(pace.delay() < 41us);
}

TEST_CASE("batch pace: runs that cost by the row are not waited for") {
  BatchPace pace;
  for (int i = 0; i < 100; ++i) pace.ran(1, 1 + i % 8, (1 + i % 8) * 50us, 0);
  CHECK(pace.delay() < 1us);
}

TEST_CASE("batch pace: long runs are waited for no longer than the limit") {
  BatchPace pace;
  for (int i = 0; i < 100; ++i) pace.ran(1, 1 + i % 8, 1s + (1 + i % 8) * 1ms, 0);
  CHECK(pace.delay() == BatchPace::kLongest);
}

TEST_CASE("batch pace: half of those who are around are enough") {
  BatchPace pace;
  for (int i = 0; i < 100; ++i) pace.ran(12, 12, 1ms, 20);
  CHECK(pace.enough() >= 15);
  CHECK(pace.enough() <= 16);
  for (int i = 0; i < 100; ++i) pace.ran(1, 1, 1ms, 0);
  CHECK(pace.enough() == 1);
}

}  // namespace sconce::server::scheduling
