// Prepares a device in the background: creates its context and opens the vendor's libraries that a model needs, while
// the caller does other work.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "sconce/device.h"

namespace sconce {

struct ModelNeeds {
  std::vector<std::string> imports;  // imports of the model's code
  int64_t rows = 0;                  // maximum of an input, not counting its last dimension
};

// Owns the threads of this work and joins them. It reports no errors: a later use of the device does. Does nothing for
// the CPU.
class OpeningAhead {
 public:
  OpeningAhead(const std::vector<Device>& devices, ModelNeeds needs);
  OpeningAhead(const OpeningAhead&) = delete;
  OpeningAhead& operator=(const OpeningAhead&) = delete;

 private:
  std::vector<std::jthread> threads_;
};

// Exports of the device's library, which may lack them.
using MakeContext = void (*)(int device);
using OpenLibraries = void (*)(const char* const* imports, size_t count, int64_t rows);
inline constexpr const char* kMakeContext = "sconce_cuda_make_context";
inline constexpr const char* kOpenLibraries = "sconce_cuda_open_libraries";

}  // namespace sconce
