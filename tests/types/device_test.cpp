#include "sconce/device.h"

#include <doctest/doctest.h>

#include "sconce/error.h"

using namespace sconce;

TEST_CASE("device: text both ways") {
  CHECK(to_string(parse_device("cpu")) == "cpu");
  CHECK(to_string(parse_device("cuda:3")) == "cuda:3");
  CHECK(parse_device("cuda") == Device{DeviceType::kCuda, 0});
  for (const char* bad : {"", "CPU", "cuda:", "cuda:-1", "cuda:1x", "cuda1", "cuda:4294967296", "xpu"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_device(bad), Error);
  }
}
