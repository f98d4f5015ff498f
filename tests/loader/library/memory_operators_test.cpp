#include "src/loader/library/memory_operators.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "package_format/elf_image.h"
#include "sconce/error.h"
#include "src/faults/code_entry.h"
#include "src/loader/library/shared_library.h"
#include "tests/loader/sample_file.h"
#include "tests/loader/sample_regions.h"

using namespace sconce;
using namespace sconce::loader;

namespace {

using Call = void(const SampleWork&);
constexpr size_t kScratch = 64 << 10;  // 256 KiB each

SharedLibrary loaded(const char* name) {
  const std::vector<std::byte> bytes = sample(name);
  return SharedLibrary::load(ElfImage(bytes, name));
}

// Runs the kernel as a model's. Returns whether it failed as told, with the results right if it was not told to.
bool run(Call* call, int threads, SampleFailure failure) {
  constexpr int kCount = 100;
  std::vector<float> out(kCount, -1);
  const faults::CodeEntry entry("sample");
  try {
    call({threads, failure, kCount, out.data(), kScratch});
  } catch (const Error& error) {
    return failure.threads != 0 && error.code() == ErrorCode::kModelFailed;
  }
  return failure.threads == 0 && out[7] == 22;
}

[[maybe_unused]] size_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (size_t kib = 0; word == "VmRSS:" && status >> kib) return kib;
  return 0;
}

}  // namespace

TEST_CASE("memory operators: arrays of frames that are left are freed, once, when no thread uses them") {
  for (const char* name : {"sample_regions", "sample_regions_together"}) {
    CAPTURE(name);
    const SharedLibrary library = loaded(name);
    auto* const call = library.function<Call>("sample_scratch_call");
    auto* const serial = library.function<Call>("sample_serial_scratch_call");
    const auto round = [&] {
      for (int threads = 1; threads <= 3; ++threads)
        for (unsigned failing = 0; failing < 1U << threads; ++failing)
          for (int place = 0; place <= 3; ++place) {
            CAPTURE(threads);
            CAPTURE(failing);
            CAPTURE(place);
            CHECK(run(call, threads, {failing, place}));
          }
      for (unsigned failing = 0; failing <= 1; ++failing) CHECK(run(serial, 1, {failing, 0}));
    };
    round();
    [[maybe_unused]] const size_t before = resident_kib();
    for (int i = 0; i < 8; ++i) round();                             // takes 400 MiB
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep what is freed
    CHECK(resident_kib() < before + (size_t{32} << 10));
#endif
    CHECK(library.loss() == 0);
  }
}

TEST_CASE("memory operators: what else frames took that are left is counted") {
  const SharedLibrary library = loaded("sample_regions");
  auto* const call = library.function<Call>("sample_vector_call");
  uint64_t expected = 0;
  for (int threads = 1; threads <= 3; ++threads)
    for (int i = 0; i < 3; ++i) {
      CHECK(run(call, threads, {}));
      CHECK(library.loss() == expected);
      CHECK(run(call, threads, {1U << i % threads, 0}));
      expected += static_cast<uint64_t>(threads) * kScratch * sizeof(float);
      CHECK(library.loss() == expected);
    }
}
