// The CUDA driver part of the fault campaign: docs/faults.md. SCONCE_FAULTS_SEED and SCONCE_FAULTS_SECONDS change its
// order and length.
#include "tests/cuda/driver_faults.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "sconce/check.h"
#include "src/cuda/runtime/error.h"
#include "tests/cuda/fake_runtime.h"

using namespace sconce;
using namespace sconce::test;

namespace {

double setting(const char* name, double otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::atof(text) : otherwise;
}

// What the campaign reports for a scenario that is broken on purpose.
std::string said_of(void (*act)(Device)) {
  DriverFaults counts;
  fail_each_call({"planted", act}, 1, 5, counts);
  return counts.lost.empty() ? "" : counts.lost.front();
}
bool says(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("driver faults: each call of each scenario in each way") {
  const std::vector<Scenario> all = driver_scenarios();
  const auto seed = static_cast<uint64_t>(setting("SCONCE_FAULTS_SEED", 1));
  const double seconds = setting("SCONCE_FAULTS_SECONDS", 20);
  DriverFaults counts;
  for (const Scenario& scenario : all)
    fail_each_call(scenario, seed, seconds / static_cast<double>(all.size()), counts);
  for (const std::string& lost : counts.lost) std::printf("LOST CUDA driver: %s\n", lost.c_str());
  std::printf("| CUDA driver, each call | %lld | %lld | %lld | %zu |\n", static_cast<long long>(counts.places),
              static_cast<long long>(counts.injected), static_cast<long long>(counts.survived), counts.lost.size());
  CHECK(counts.injected > 0);
  CHECK(counts.lost.empty());
}

TEST_CASE("driver faults: what is planted is seen") {
  static std::vector<cudaStream_t> left;
  CHECK(says(said_of([](Device) {
               cudaStream_t stream = nullptr;
               SCONCE_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
               left.push_back(stream);
               SCONCE_CUDA(cudaStreamSynchronize(stream));
               left.pop_back();
               SCONCE_CUDA_RELEASE(cudaStreamDestroy(stream));
             }),
             "streams: "));
  for (const cudaStream_t stream : left) cudaStreamDestroy(stream);
  CHECK(says(said_of([](Device) { SCONCE_CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess, kDevice, "it failed"); }),
             "does not name what failed"));
  CHECK(says(said_of([](Device) { cudaStreamSynchronize(nullptr); }), "the error of cudaStreamSynchronize left"));
  CHECK(says(said_of([](Device device) {
               int now = -1;
               SCONCE_CUDA(cudaSetDevice(device.index));
               cudaGetDevice(&now);
               cudaGetLastError();
               SCONCE_CUDA(cudaSetDevice(0));
               must(now == device.index, "another device");
             }),
             "wrong: another device"));
  CHECK(says(said_of([](Device) {
               if (cudaStreamSynchronize(nullptr) != cudaSuccess) throw std::runtime_error("what is this?");
             }),
             "no sconce::Error"));
}
