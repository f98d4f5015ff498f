// Whether a replica makes what a named set needs between other work.
#include "src/runner/sets/instantiation_times.h"

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using sconce::runner::InstantiationTimes;

TEST_CASE("instantiation times: quick after eight that were, not after a slow one, and quick again") {
  InstantiationTimes times;
  for (int i = 0; i < 8; ++i) {
    CHECK(!times.quick());
    times.took(10us);
  }
  CHECK(times.quick());
  times.took(1ms);  // the mean is 133 us
  CHECK(!times.quick());
  for (int i = 0; i < 30; ++i) times.took(10us);
  CHECK(times.quick());
  for (int i = 0; i < 30; ++i) times.took(60us);
  CHECK(!times.quick());
}
