#include "src/loader/library/parallel_regions.h"

#include <doctest/doctest.h>
#include <pthread.h>

#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "package_format/elf_image.h"
#include "sconce/mapped_files.h"
#include "src/faults/code_entry.h"
#include "src/loader/library/shared_library.h"
#include "tests/loader/sample_file.h"
#include "tests/loader/sample_regions.h"

using namespace sconce;
using namespace sconce::loader;

extern "C" void GOMP_barrier();  // libgomp's

namespace {

SharedLibrary loaded(const char* name) {
  const std::vector<std::byte> bytes = sample(name);
  return SharedLibrary::load(ElfImage(bytes, name));
}
void* barrier_of(const SharedLibrary& library) { return library.function<void*()>("sample_barrier")(); }
void* gnu_barrier() { return reinterpret_cast<void*>(&GOMP_barrier); }
void other_barrier() {}

using Call = void(const SampleWork&);

// Runs the kernel. Returns the error's text, or "" if the results are right.
std::string outcome(Call* call, int threads, SampleFailure failure) {
  constexpr int kCount = 100;
  std::vector<float> out(kCount, -1);
  try {
    call({threads, failure, kCount, out.data()});
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kModelFailed);
    return error.what();
  }
  for (int i = 0; i < kCount; ++i)
    if (out[static_cast<size_t>(i)] != static_cast<float>(3 * i + 1)) return "wrong result";
  return "";
}

std::string text_of(int place) { return "index out of bounds (kernel at kernel.cpp:" + std::to_string(place) + ")"; }

}  // namespace

TEST_CASE("parallel regions: a team waits for all of its threads, one thread for none") {
  const SharedLibrary library = loaded("sample_barrier");
  CHECK(barrier_of(library) != gnu_barrier());
  auto* const rounds = library.function<int(int, int, int*)>("sample_rounds");
  for (const int threads : {1, 2, 3, 1, 4, 20}) {
    CAPTURE(threads);
    std::vector<int> written(16 * static_cast<size_t>(threads));
    CHECK(rounds(threads, 500, written.data()) == 500 * threads);
  }
}

TEST_CASE("parallel regions: libraries with tasks or with another run time keep their barrier") {
  CHECK(barrier_of(loaded("sample_tasks")) == gnu_barrier());
  SharedLibrary library = loaded("sample_barrier");
  void* const other = reinterpret_cast<void*>(&other_barrier);
  library.rebind("GOMP_barrier", other);
  bind_parallel_regions(library);
  CHECK(barrier_of(library) == other);
  SharedLibrary none = loaded("sample_model");
  bind_parallel_regions(none);
  CHECK(!none.imports("GOMP_barrier"));
}

TEST_CASE("parallel regions: a check that fails on any threads, before, between and after barriers, ends the region") {
  for (const char* name : {"sample_regions", "sample_regions_together"}) {
    CAPTURE(name);
    const SharedLibrary library = loaded(name);
    auto* const call = library.function<Call>("sample_call");
    for (int threads = 1; threads <= 4; ++threads)
      for (unsigned failing = 0; failing < 1U << threads; ++failing)
        for (int place = 0; place <= 3; ++place) {
          CAPTURE(threads);
          CAPTURE(failing);
          CAPTURE(place);
          CHECK(outcome(call, threads, {failing, place}) == (failing ? text_of(place) : ""));
          CHECK(outcome(call, threads, {}).empty());
        }
    // Only where the caller's compiler saw that the kernel throws nothing does it keep what it owned.
    auto* const objects = library.function<int()>("sample_objects");
    CHECK((objects() == 0) == (std::string(name) == "sample_regions"));
  }
}

TEST_CASE("parallel regions: more threads than cores, on many callers at once, thousands of times") {
  const SharedLibrary library = loaded("sample_regions");
  auto* const call = library.function<Call>("sample_call");
  std::vector<std::thread> callers;
  std::vector<int> wrong(4);
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      int& errors = wrong[static_cast<size_t>(caller)];
      for (int i = 0; i < 500; ++i) {
        const int place = (i + caller) % 4;
        const auto failing = static_cast<unsigned>(i) % 8;
        errors += outcome(call, 3, {failing, place}) != (failing ? text_of(place) : "");
      }
    });
  for (std::thread& caller : callers) caller.join();
  for (const int errors : wrong) CHECK(errors == 0);
}

namespace {

// An overflow of the stack ends the run, on any thread, again and again.
void overflow_in_teams() {
  sigset_t mask_before{};
  REQUIRE(pthread_sigmask(SIG_SETMASK, nullptr, &mask_before) == 0);
  for (const char* name : {"sample_regions", "sample_regions_together"}) {
    CAPTURE(name);
    const SharedLibrary library = loaded(name);
    for (const auto& [function, most] : {std::pair{"sample_call", 3}, {"sample_serial_call", 1}}) {
      CAPTURE(function);
      auto* const call = library.function<Call>(function);
      for (const SampleFault kind : {SampleFault::kRecursion, SampleFault::kArray})
        for (int round = 0; round < 6; ++round) {
          const int threads = 1 + round % most, place = most == 1 ? 0 : round % 4;
          // One thread of the team or all of them. The first one is this thread.
          const unsigned failing = round < 3 ? 1U << round % threads : ~0U;
          const faults::CodeEntry entry(name);
          const std::string text = outcome(call, threads, {failing, place, kind});
          REQUIRE_MESSAGE(text.find("has overflowed its stack (SIGSEGV)") != std::string::npos, text);
          REQUIRE(outcome(call, threads, {}).empty());
          stack_t now{};
          sigset_t mask{};
          REQUIRE(sigaltstack(nullptr, &now) == 0);
          CHECK(now.ss_flags == 0);  // there, and not in use
          REQUIRE(pthread_sigmask(SIG_SETMASK, nullptr, &mask) == 0);
          CHECK(std::memcmp(&mask, &mask_before, sizeof mask) == 0);
        }
    }
    CHECK(library.damage() > 0);
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // whose frames are larger
constexpr size_t kKibibytes[] = {2048, 4096}, kAlternateStack = 256 << 10;
#else
constexpr size_t kKibibytes[] = {128, 256, 1024}, kAlternateStack = 32 << 10;
#endif

// Threads of any size, with alternate stacks of their own or with ours.
void overflow_in_small_threads() {
  const SharedLibrary library = loaded("sample_regions");
  auto* const call = library.function<Call>("sample_serial_call");
  struct Thread {
    Call* call;
    bool own_stack;
    int wrong = 0;
    stack_t after{};
    std::vector<std::byte> own;
  };
  const auto body = [](void* argument) -> void* {
    Thread& self = *static_cast<Thread*>(argument);
    if (self.own_stack) {
      self.own.resize(kAlternateStack);
      stack_t own{};
      own.ss_sp = self.own.data();
      own.ss_size = self.own.size();
      self.wrong += sigaltstack(&own, nullptr) != 0;
    }
    for (int i = 0; i < 20; ++i) {
      const faults::CodeEntry entry("sample");
      const SampleFault kind = i % 2 ? SampleFault::kArray : SampleFault::kRecursion;
      self.wrong += outcome(self.call, 1, {1, 0, kind}).find("overflowed") == std::string::npos;
      self.wrong += !outcome(self.call, 1, {}).empty();
    }
    self.wrong += sigaltstack(nullptr, &self.after) != 0;
    return nullptr;
  };
  for (const size_t kib : kKibibytes)
    for (const bool own_stack : {false, true}) {
      CAPTURE(kib);
      CAPTURE(own_stack);
      pthread_attr_t sized{};
      REQUIRE(pthread_attr_init(&sized) == 0);
      REQUIRE(pthread_attr_setstacksize(&sized, kib << 10) == 0);
      std::vector<Thread> threads(4, Thread{call, own_stack, 0, {}, {}});
      std::vector<pthread_t> started(threads.size());
      for (size_t i = 0; i < threads.size(); ++i) REQUIRE(pthread_create(&started[i], &sized, +body, &threads[i]) == 0);
      for (size_t i = 0; i < threads.size(); ++i) {
        pthread_join(started[i], nullptr);
        CHECK(threads[i].wrong == 0);
        CHECK(threads[i].after.ss_flags == 0);
        CHECK((threads[i].after.ss_sp == threads[i].own.data()) == own_stack);
      }
      pthread_attr_destroy(&sized);
    }
}

}  // namespace

TEST_CASE("parallel regions: instructions that raise a signal end the run, on any thread, thousands of times") {
  guard_package_faults();
  struct Case {
    SampleFault kind;
    const char* text;
  };
  const Case cases[] = {{SampleFault::kDivision, "integer division by zero"},
                        {SampleFault::kNull, "memory at 0 that may not be accessed (SIGSEGV)"},
                        {SampleFault::kWild, "memory that may not be accessed (SIGSEGV)"},
                        {SampleFault::kIllegal, "an instruction that this CPU does not execute (SIGILL)"},
                        {SampleFault::kUnreadable, "memory that cannot be read (SIGBUS)"}};
  for (const char* name : {"sample_regions", "sample_regions_together"}) {
    CAPTURE(name);
    const SharedLibrary library = loaded(name);
    for (const auto& [function, kernel, most] :
         {std::tuple{"sample_call", "(sample_kernel)", 3}, {"sample_serial_call", "(sample_serial_kernel)", 1}}) {
      CAPTURE(function);
      auto* const call = library.function<Call>(function);
      for (const Case& one : cases)
        for (int round = 0; round < 100; ++round) {
          const int threads = 1 + round % most, place = most == 1 ? 0 : round % 4;
          const unsigned failing = 1U << (round / 4) % threads | static_cast<unsigned>(round % 2);
          const std::string text = outcome(call, threads, {failing, place, one.kind});
          REQUIRE_MESSAGE(text.find(one.text) != std::string::npos, text);
          // Of functions in one file, the innermost may be another one.
          if (std::string(name) == "sample_regions") REQUIRE_MESSAGE(text.find(kernel) != std::string::npos, text);
          REQUIRE(outcome(call, threads, {}).empty());
        }
    }
    auto* const objects = library.function<int()>("sample_objects");
    CHECK((objects() == 0) == (std::string(name) == "sample_regions"));
  }
  // Here, since doctest takes the handlers away at the end of a test case.
  overflow_in_teams();
  overflow_in_small_threads();
}

TEST_CASE("parallel regions: a body that catches the failure gets it") {
  const SharedLibrary library = loaded("sample_regions");
  auto* const call = library.function<Call>("sample_catching_call");
  float none = 0;
  for (int i = 0; i < 10; ++i) {
    CHECK_THROWS_WITH(call({3, {5, 0}, 0, &none}), "the body caught 2");
    CHECK_NOTHROW(call({3, {}, 0, &none}));
  }
}

TEST_CASE("parallel regions: a region within a region") {
  const SharedLibrary library = loaded("sample_regions");
  auto* const call = library.function<Call>("sample_nested_call");
  float none = 0;
  for (unsigned failing = 0; failing < 8; ++failing)
    for (int place = 0; place <= 1; ++place) {
      CAPTURE(failing);
      if (failing)
        CHECK_THROWS_WITH(call({3, {failing, place}, 0, &none}), text_of(place).c_str());
      else
        CHECK_NOTHROW(call({3, {}, 0, &none}));
    }
}
