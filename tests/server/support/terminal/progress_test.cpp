#include "server/support/terminal/progress.h"

#include <doctest/doctest.h>

using namespace sconce::server;

namespace {
constexpr uint64_t kMiB = uint64_t{1} << 20;
}

TEST_CASE("progress: share, rate and time left") {
  CHECK(progress_line("push", 512 * kMiB, 2048 * kMiB, 4, 100) ==
        "push [=======                       ]  25 %  512 MiB of 2.00 GiB, 128 MiB/s, 12 s left");
  CHECK(progress_line("", 0, 10 * kMiB, 0, 100) == "[                              ]   0 %  0 B of 10.0 MiB");
  CHECK(progress_line("push", 10 * kMiB, 10 * kMiB, 1, 100) ==
        "push [==============================] 100 %  10.0 MiB of 10.0 MiB, 10.0 MiB/s");
}

TEST_CASE("progress: long times have minutes and hours") {
  CHECK(progress_line("x", kMiB, 101 * kMiB, 1, 120).ends_with(", 1:40 left"));
  CHECK(progress_line("x", kMiB, 3701 * kMiB, 1, 120).ends_with(", 1:01:40 left"));
  CHECK(progress_line("x", 1, UINT64_MAX, 1, 120).ends_with(", 99:59:59 left"));
}

TEST_CASE("progress: without a total there is no bar") {
  CHECK(progress_line("load", 3 * kMiB, 0, 1, 80) == "load 3.00 MiB, 3.00 MiB/s");
}

TEST_CASE("progress: a line is narrower than the terminal") {
  for (size_t columns = 0; columns < 120; ++columns)
    CHECK(progress_line("a label", 123 * kMiB, 456 * kMiB, 7, columns).size() < std::max<size_t>(columns, 1));
}

TEST_CASE("progress: never more than all") {
  CHECK(progress_line("x", 3 * kMiB, 2 * kMiB, 1, 100).find("100 %") != std::string::npos);
}
