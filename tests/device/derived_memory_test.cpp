#include "src/device/derived_memory.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/errors.h"

using namespace sconce;

TEST_CASE("kept memory: aligned and whole, small, on huge pages and with a part of one") {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{64}, size_t{65}, (size_t{2} << 20) - 1, size_t{2} << 20, (size_t{5} << 20) + 3}) {
    const DerivedMemory memory = allocate_derived("test", bytes);
    CHECK(reinterpret_cast<uintptr_t>(memory.get()) % 64 == 0);
    std::memset(memory.get(), 1, bytes);
  }
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 4})
    CHECK(error_from(ErrorCode::kOutOfMemory, [&] { allocate_derived("test", bytes); }) ==
          "test: cannot allocate " + std::to_string(bytes) + " bytes for a constant");
}
