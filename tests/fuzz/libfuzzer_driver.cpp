// Runs the entry that FUZZ_ENTRY names under libFuzzer. If FUZZ_SEEDS names a directory, only writes the seeds there.
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "tests/fuzz/entries.h"

namespace {
const sconce::fuzz::Entry& entry() {
  static const sconce::fuzz::Entry& found = *sconce::fuzz::find_entry(FUZZ_ENTRY);
  return found;
}
}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
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
