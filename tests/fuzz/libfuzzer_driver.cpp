// Runs under libFuzzer the entry that the environment variable FUZZ_ENTRY names. If FUZZ_SEEDS names a directory, only
// writes the entry's seeds there.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/fuzz/entries.h"

namespace {
const sconce::fuzz::Entry& entry() {
  static const sconce::fuzz::Entry* const found = [] {
    const char* const name = std::getenv("FUZZ_ENTRY");
    const sconce::fuzz::Entry* const named = name ? sconce::fuzz::find_entry(name) : nullptr;
    if (!named) {
      std::fprintf(stderr, "FUZZ_ENTRY must name an entry of tests/fuzz/entries.txt: %s\n",
                   name ? name : "it is not set");
      std::exit(2);
    }
    return named;
  }();
  return *found;
}
}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  entry();
  if (const char* folder = std::getenv("FUZZ_SEEDS")) {
    int number = 0;
    for (const std::string& seed : entry().seeds()) {
      if (seed.empty()) std::abort();  // a file that seeds are made from is missing
      std::ofstream(std::string(folder) + "/seed" + std::to_string(number++), std::ios::binary) << seed;
    }
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  entry().run({reinterpret_cast<const char*>(data), size});
  return 0;
}
