// Lets each call of CUDA in a scenario fail, one after the other, in each way, and looks afterwards at what must hold:
// the scenario ended with right results or an sconce::Error that says what failed, nothing is left behind, and the next
// one works.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sconce/device.h"

namespace sconce::test {

// What a scenario throws where an answer is not the right one.
struct Wrong : std::runtime_error {
  using runtime_error::runtime_error;
};
inline void must(bool holds, const char* what) {
  if (!holds) throw Wrong(what);
}

struct Scenario {
  const char* name;
  std::function<void(Device)> act;
};
std::vector<Scenario> driver_scenarios();

struct DriverFaults {
  int64_t places = 0, injected = 0, survived = 0;  // a place: one call in one way to fail
  std::vector<std::string> lost;
};
// Adds to the counts. Places in an order drawn with `seed`, until the time is over.
void fail_each_call(const Scenario& scenario, uint64_t seed, double seconds, DriverFaults& counts);

}  // namespace sconce::test
