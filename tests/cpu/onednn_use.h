// Which products and convolutions go to oneDNN while a test runs.
#pragma once

#include <cstdlib>
#include <string_view>

#include "src/cpu/onednn/onednn.h"

namespace sconce::testing {

// ctest runs the tests of products and convolutions a second time, with the library at every size.
inline onednn::Use use_of_this_run() {
  const char* use = std::getenv("SCONCE_TEST_ONEDNN");
  return use && std::string_view(use) == "always" ? onednn::Use::kAlways : onednn::Use::kByPolicy;
}

struct Using {
  explicit Using(onednn::Use use) { onednn::testing_use(use); }
  ~Using() { onednn::testing_use(use_of_this_run()); }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;
};

}  // namespace sconce::testing
