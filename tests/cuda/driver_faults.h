// Lets each CUDA call of a scenario fail, one after the other, in each way. Then checks that the scenario ended with
// right results or with an sconce::Error that says what failed, that nothing is left behind, and that the next scenario
// works.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sconce/device.h"

namespace sconce::test {

// A scenario throws this for a wrong answer.
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
  int64_t places = 0, injected = 0, survived = 0;  // places: calls times ways to fail
  std::vector<std::string> lost;
};
// Adds to the counts. Visits the places in an order drawn with `seed`, until the time is over.
void fail_each_call(const Scenario& scenario, uint64_t seed, double seconds, DriverFaults& counts);

}  // namespace sconce::test
