// Finds no memory while the library is initialised, the first time; and says what was.
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
