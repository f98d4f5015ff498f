#include "server/telemetry/gpu_metrics.h"

#include <doctest/doctest.h>

namespace sconce::server::telemetry {

TEST_CASE("gpu_metrics: what devices tell, in units of the metrics") {
  GpuReader reader(SCONCE_FAKE_NVML);
  const std::vector<GpuState> states = reader.look();
  REQUIRE(states.size() == 2);
  CHECK(states[0].uuid == "GPU-one");
  CHECK(states[0].utilization.value() == doctest::Approx(0.37));
  CHECK(states[0].memory_total.value() == uint64_t{80} << 30);
  CHECK(states[0].memory_used.value() == uint64_t{1} << 30);
  CHECK(states[0].power_watts.value() == doctest::Approx(123.456));
  CHECK(states[0].energy_joules.value() == 0);
  CHECK(reader.look()[0].energy_joules.value() == doctest::Approx(1.5));
}

TEST_CASE("gpu_metrics: what a device or the library does not have is absent") {
  GpuReader reader(SCONCE_FAKE_NVML);
  const std::vector<GpuState> states = reader.look();
  REQUIRE(states.size() == 2);
  CHECK_FALSE(states[0].power_limit_watts);  // no such function
  CHECK(states[1].uuid == "GPU-two");
  CHECK_FALSE(states[1].utilization);
  CHECK_FALSE(states[1].memory_used);
  CHECK_FALSE(states[1].energy_joules);
}

TEST_CASE("gpu_metrics: no library, no devices") {
  GpuReader reader("libthere-is-no-such-library.so");
  CHECK(reader.look().empty());
  CHECK(reader.look().empty());
}

}  // namespace sconce::server::telemetry
