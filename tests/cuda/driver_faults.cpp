#include "driver_faults.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <random>

#include "fake_runtime.h"
#include "sconce/error.h"
#include "src/cuda/runtime/caching_allocator.h"
#include "src/cuda/runtime/stream.h"

namespace sconce::test {
namespace {

constexpr Device kFirst{DeviceType::kCuda, 0}, kSecond{DeviceType::kCuda, 1};

struct Way {
  const char* name;
  cudaError_t error;
  int64_t times;
  bool sticks;
};
constexpr Way kWays[] = {
    {"no memory, once", cudaErrorMemoryAllocation, 1, false},
    {"no memory, for good", cudaErrorMemoryAllocation, kForGood, false},
    {"invalid value, once", cudaErrorInvalidValue, 1, false},
    {"invalid value, for good", cudaErrorInvalidValue, kForGood, false},
    {"not supported, once", cudaErrorNotSupported, 1, false},
    {"not supported, for good", cudaErrorNotSupported, kForGood, false},
    {"illegal address, once", cudaErrorIllegalAddress, 1, false},
    {"illegal address that sticks", cudaErrorIllegalAddress, 1, true},
    {"launch failure that sticks", cudaErrorLaunchFailure, 1, true},
    {"capture unsupported, once", cudaErrorStreamCaptureUnsupported, 1, false},
    {"capture unsupported, for good", cudaErrorStreamCaptureUnsupported, kForGood, false},
    {"capture invalidated, once", cudaErrorStreamCaptureInvalidated, 1, false},
};

// Tells what was running if the process ends anyway.
std::string place_now;
[[noreturn]] void say_where() {
  std::fprintf(stderr, "LOST CUDA driver: %s: the process ended\n", place_now.c_str());
  std::abort();
}

using Counts = std::array<int64_t, 12>;
Counts counts_now() {
  const FakeRuntime& fake = fake_runtime();
  return {fake.live_device,
          fake.live_pinned,
          fake.live_streams,
          fake.live_graphs,
          fake.live_graph_execs,
          fake.live_events,
          fake.live_shared,
          fake.live_modules,
          static_cast<int64_t>(cuda::CachingAllocator::in_use(0)),
          static_cast<int64_t>(cuda::CachingAllocator::in_use(1)),
          static_cast<int64_t>(cuda::CachingAllocator::cached(0)),
          static_cast<int64_t>(cuda::CachingAllocator::cached(1))};
}
constexpr const char* kCounted[] = {"device memory", "pinned memory", "streams",       "graphs",
                                    "graph execs",   "events",        "shared memory", "modules",
                                    "bytes in use",  "bytes in use",  "bytes cached",  "bytes cached"};

// Frees caches, which are no leak. Twice, because trimming keeps what was used since the last time.
void settle() {
  for (int i = 0; i < 2; ++i)
    for (const Device device : {kFirst, kSecond}) device_backend(device).trim(device);
}

// Describes what the scenario left behind; "" if nothing.
std::string left_behind(const Counts& before, bool modes = true) {
  const std::string misuse = fake_runtime().misuse(modes);
  settle();
  if (!misuse.empty()) return misuse;
  if (cuda::current().device != device_of_thread() && !cuda::current().astray)
    return "CUDA's device of the thread is not the one that we think";
  if (cuda::current().device != 0 || cuda::current().stream || cuda::current().memory || cuda::current().capturing)
    return "the thread is left with another device, stream or memory";
  const Counts now = counts_now();
  for (size_t i = 0; i < now.size(); ++i)
    if (now[i] != before[i])
      return std::string(kCounted[i]) + ": " + std::to_string(now[i]) + ", " + std::to_string(before[i]) + " before";
  return {};
}

// "" if it ended properly: with right results or, if `failing`, with an error that names the call.
std::string ended(const Scenario& scenario, Device device, const Way* failing) {
  try {
    scenario.act(device);
    return {};
  } catch (const Wrong& wrong) {
    return std::string("wrong: ") + wrong.what();
  } catch (const Error& error) {
    const std::string text = error.what();
    if (!failing) return "fails without a fault: " + text;
    if (text.find(cudaGetErrorString(failing->error)) != std::string::npos) return {};
    return "an error that does not name what failed: " + text;
  } catch (const std::exception& other) {
    return std::string("no sconce::Error: ") + other.what();
  }
}

// "" if everything holds. Sets `injected` if the fault was met.
std::string one_fault(const Scenario& scenario, int64_t at, const Way& way, bool& injected) {
  FakeRuntime& fake = fake_runtime();
  const Counts before = counts_now();
  fake.fail({.error = way.error, .at = at, .times = way.times, .sticks = way.sticks});
  std::string problem = ended(scenario, kFirst, &way);
  const std::string fired = fake.fired();
  injected = !fired.empty();
  fake.mend();
  // A capture mode that could not be restored must be restored by the next recording.
  if (problem.empty()) problem = left_behind(before, false);
  for (const Device device : {kFirst, kSecond})
    if (problem.empty() && !(problem = ended(scenario, device, nullptr)).empty()) problem = "afterwards: " + problem;
  if (problem.empty() && !(problem = left_behind(before)).empty()) problem = "afterwards: " + problem;
  if (problem.empty()) return {};
  // Clean up, so that one problem is reported once.
  cuda::current() = {};
  cuda::go_back();
  settle();
  fake.misuse();
  return fired + ", " + problem;
}

}  // namespace

void fail_each_call(const Scenario& scenario, uint64_t seed, double seconds, DriverFaults& counts) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::set_terminate(say_where);
  place_now = std::string(scenario.name) + ", without a fault";
  FakeRuntime& fake = fake_runtime();
  // First fills what the process keeps for its life.
  std::string problem = ended(scenario, kFirst, nullptr);
  if (problem.empty()) problem = ended(scenario, kSecond, nullptr);
  settle();
  fake.misuse();
  const Counts before = counts_now();
  fake.fail({});
  if (problem.empty()) problem = ended(scenario, kFirst, nullptr);
  const int64_t calls = fake.calls();
  if (problem.empty()) problem = left_behind(before);
  if (!problem.empty()) {
    counts.lost.push_back(place_now + ": " + problem);
    return;
  }
  struct Place {
    int64_t at;
    const Way* way;
  };
  std::vector<Place> places;
  for (int64_t at = 1; at <= calls; ++at)
    for (const Way& way : kWays) places.push_back({at, &way});
  counts.places += static_cast<int64_t>(places.size());
  std::shuffle(places.begin(), places.end(), std::mt19937_64(seed));
  for (const Place& place : places) {
    if (std::chrono::steady_clock::now() >= end) break;
    place_now = std::string(scenario.name) + ", call " + std::to_string(place.at) + ", " + place.way->name;
    bool injected = false;
    problem = one_fault(scenario, place.at, *place.way, injected);
    counts.injected += injected;
    if (problem.empty())
      counts.survived += injected;
    else
      counts.lost.push_back(place_now + ": " + problem);
  }
}

}  // namespace sconce::test
