// Throws std::bad_alloc when the library is initialised for the first time, and reports what happened.
#include <cstdlib>
#include <new>

namespace {

int initialised = 0;
__attribute__((constructor(101))) void first() { ++initialised; }

struct Table {
  Table() {
    if (std::getenv("SAMPLE_THROWS")) throw std::bad_alloc();
    ++initialised;
  }
} table;

}  // namespace

extern "C" int sample_initialised() { return initialised; }
