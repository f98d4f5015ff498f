// The C++ names as compiled models spell them (libc10.so and libtorch_cpu.so, torch 2.15; report_overflow and the
// std::string of before C++11: torch 2.6).
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <omp.h>

#include <cstdint>
#include <string>
#include <thread>

#include "sconce/error.h"
#include "src/device/threads.h"

using namespace sconce;

namespace {

template <class F>
F* imported(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  CHECK_MESSAGE(found != nullptr, name);
  REQUIRE(found != nullptr);
  return reinterpret_cast<F*>(found);
}

template <class F>
std::string thrown(F&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    CHECK(ours != nullptr);
    if (ours) CHECK(ours->code() == ErrorCode::kModelFailed);
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("torch names: checks throw what the model catches, with the text") {
  using Plain = void(const char*, const char*, uint32_t, const char*);
  using Text = void(const char*, const char*, uint32_t, const std::string&);
  using Plain2 = void(const char*, const char*, uint32_t, const char*, const char*);
  using Text2 = void(const char*, const char*, uint32_t, const char*, const std::string&);
  auto* plain = imported<Plain>("_ZN3c106detail14torchCheckFailEPKcS2_jS2_");
  auto* text =
      imported<Text>("_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
  auto* plain2 = imported<Plain2>("_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_S2_");
  auto* text2 = imported<Text2>(
      "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
  auto* bare = imported<void(const char*, const char*, uint32_t, const char*)>(
      "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_NS0_22CompileTimeEmptyStringE");
  auto* overflow = imported<void(const char*)>("_ZN3c1015report_overflowEPKc");
  CHECK(thrown([&] { plain("run", "k.cpp", 7, "bad size"); }) == "bad size (run at k.cpp:7)");
  CHECK(thrown([&] { text("run", "k.cpp", 8, std::string("bad rank")); }) == "bad rank (run at k.cpp:8)");
  CHECK(thrown([&] { plain2("run", "k.cpp", 9, "x > 0 INTERNAL ASSERT FAILED", "why"); }) ==
        "x > 0 INTERNAL ASSERT FAILED why (run at k.cpp:9)");
  CHECK(thrown([&] { text2("run", "k.cpp", 9, "x > 0", std::string("why")); }) == "x > 0 why (run at k.cpp:9)");
  CHECK(thrown([&] { bare("run", "k.cpp", 10, "x > 0"); }) == "x > 0 (run at k.cpp:10)");
  CHECK(thrown([&] { overflow("int8_t"); }) == "value cannot be converted to type int8_t without overflow");
  // The old std::string: one pointer, to the characters.
  struct OldString {
    const char* characters;
  } old{"bad dtype"};
  auto* old_text = imported<void(const char*, const char*, uint32_t, const OldString&)>(
      "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs");
  CHECK(thrown([&] { old_text("run", "k.cpp", 11, old); }) == "bad dtype (run at k.cpp:11)");
  CHECK(dlsym(RTLD_DEFAULT, "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs") != nullptr);
}

TEST_CASE("torch names: what at::parallel_for asks") {
  auto* init = imported<void()>("_ZN2at16init_num_threadsEv");
  auto* lazy_init = imported<void()>("_ZN2at8internal21lazy_init_num_threadsEv");
  auto* threads = imported<int()>("_ZN2at15get_num_threadsEv");
  auto* number = imported<int()>("_ZN2at14get_thread_numEv");
  auto* set_number = imported<void(int)>("_ZN2at8internal14set_thread_numEi");
  auto* in_parallel = imported<bool()>("_ZN2at18in_parallel_regionEv");
  std::thread([&] {
    set_kernel_threads(3);
    init();
    lazy_init();
    CHECK(threads() == 3);
    CHECK(omp_get_max_threads() == 3);
    CHECK(number() == 0);
    set_number(2);
    CHECK(number() == 2);
    std::thread([&] { CHECK(number() == 0); }).join();
    CHECK(!in_parallel());
    bool inside = false;
#pragma omp parallel num_threads(2)
#pragma omp master
    inside = in_parallel();
    CHECK(inside);
  }).join();
}

TEST_CASE("torch names: ParallelGuard restores what it found") {
  auto* enabled = imported<bool()>("_ZN3c1013ParallelGuard10is_enabledEv");
  auto* make = imported<void(void*, bool)>("_ZN3c1013ParallelGuardC1Eb");
  auto* end = imported<void(void*)>("_ZN3c1013ParallelGuardD1Ev");
  bool outer, inner;
  CHECK(!enabled());
  make(&outer, true);
  CHECK(enabled());
  make(&inner, false);
  CHECK(!enabled());
  end(&inner);
  CHECK(enabled());
  end(&outer);
  CHECK(!enabled());
}
