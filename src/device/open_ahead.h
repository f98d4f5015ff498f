// What the first use of a device waits for, begun while the caller does other things: the device's context, and
// libraries of its vendor that a model will need.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "sconce/device.h"

namespace sconce {

struct ModelNeeds {
  std::vector<std::string> imports;  // of the model's code
  int64_t rows = 0;                  // the most that an input may have, not counting its last dimension
};

// Threads that end before this object does. Nothing fails: a later use of the device says what is wrong. For processors
// it does nothing.
class OpeningAhead {
 public:
  OpeningAhead(const std::vector<Device>& devices, ModelNeeds needs);
  OpeningAhead(const OpeningAhead&) = delete;
  OpeningAhead& operator=(const OpeningAhead&) = delete;

 private:
  std::vector<std::jthread> threads_;
};

// Exports of the device's library; it may lack them.
using MakeContext = void (*)(int device);
using OpenLibraries = void (*)(const char* const* imports, size_t count, int64_t rows);
inline constexpr const char* kMakeContext = "sconce_cuda_make_context";
inline constexpr const char* kOpenLibraries = "sconce_cuda_open_libraries";

}  // namespace sconce
