// Needs a device. Without one, says so and exits with success, having tested nothing.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "tests/cuda/device_calls.h"

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  if (const std::string& reason = sconce::gpu::why_none(); !reason.empty() && !context.shouldExit()) {
    std::printf("skipped, no CUDA device to test on: %s\n", reason.c_str());
    return 0;
  }
  return context.run();
}
