// C++ names as compiled models spell them (libc10.so and libtorch_cpu.so, torch 2.15; torch 2.6 for report_overflow and
// the std::string from before C++11).
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <omp.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

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
  // The old std::string: a single pointer to the characters.
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

namespace {

// c10::DataPtr and the vtable of c10::Allocator as compiled models see them, torch 2.6 to 2.15.
struct DataPtr {
  void* data;
  void (*deleter)(void*);  // std::unique_ptr stores it before the pointer
  void* context;
  int8_t device_type, device_index;
};
struct Allocator {
  struct Functions {
    void (*destroy)(Allocator*);
    void (*destroy_and_free)(Allocator*);
    DataPtr* (*allocate)(DataPtr* result, Allocator*, size_t bytes);
    bool (*is_simple_data_ptr)(const Allocator*, const DataPtr*);
    void (*(*raw_deleter)(const Allocator*))(void*);
    void (*copy_data)(const Allocator*, void* to, const void* from, size_t bytes);
  };
  const Functions* functions;
};

}  // namespace

TEST_CASE("torch names: the allocator, field by field") {
  auto* get = imported<Allocator*()>("_ZN2at15getCPUAllocatorEv");
  Allocator* const allocator = get();
  CHECK(imported<Allocator*()>("_ZN3c1015GetCPUAllocatorEv")() == allocator);
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{1} << 20}) {
    DataPtr pointer;
    REQUIRE(allocator->functions->allocate(&pointer, allocator, bytes) == &pointer);
    CHECK(reinterpret_cast<uintptr_t>(pointer.data) % 64 == 0);
    CHECK(pointer.device_type == 0);
    CHECK(pointer.device_index == -1);
    const std::string text(bytes, 'x');
    allocator->functions->copy_data(allocator, pointer.data, text.data(), bytes);
    CHECK(std::string(static_cast<const char*>(pointer.data), bytes) == text);
    pointer.deleter(pointer.context);
  }
  DataPtr none;
  allocator->functions->allocate(&none, allocator, 0);
  CHECK(none.data == nullptr);
  CHECK(none.context == nullptr);
  const bool by_address = allocator->functions->raw_deleter(allocator) != nullptr;
  CHECK(!by_address);
}

TEST_CASE("torch names: matrix products of compiled templates") {
  using Product =
      void(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool, const void*, const void*, void*, bool);
  const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  float c[] = {1, 1, 1, 1};
  imported<Product>("_ZN2at6native7cpublas6brgemmEllllllbPKfS3_Pfb")(2, 2, 2, 2, 2, 2, true, a, b, c, false);
  CHECK(std::string(reinterpret_cast<const char*>(c), sizeof(c)) ==
        std::string(reinterpret_cast<const char*>(std::array<float, 4>{20, 23, 44, 51}.data()), sizeof(c)));
  const int8_t signs[] = {-1, 2, 3, -4};
  const uint8_t bytes[] = {255, 1, 1, 255};
  int32_t sums[4];
  imported<Product>("_ZN2at6native7cpublas6brgemmEllllllbPKhPKaPib")(2, 2, 2, 2, 2, 2, false, bytes, signs, sums,
                                                                     false);
  CHECK(std::vector<int32_t>(sums, sums + 4) == std::vector<int32_t>{-252, 506, 764, -1018});
  imported<void(bool)>("_ZN2at6native7cpublas14brgemm_releaseEb")(true);
  CHECK(!imported<bool(int8_t)>("_ZN2at6native7cpublas10could_packEN3c1010ScalarTypeE")(15));
  auto* pack = imported<void(int64_t, int64_t, int64_t, int64_t, int8_t, int8_t, const void*, void*)>(
      "_ZN2at6native7cpublas4packEllllN3c1010ScalarTypeES3_PKvPv");
  const uint16_t rows[] = {1, 2, 3, 4};
  uint16_t pairs[4];
  pack(2, 2, 2, 2, 15, 15, rows, pairs);
  CHECK(std::vector<uint16_t>(pairs, pairs + 4) == std::vector<uint16_t>{1, 3, 2, 4});
  CHECK_THROWS_WITH_AS(pack(2, 2, 2, 2, 6, 6, rows, pairs), doctest::Contains("only half and bfloat16"), Error);
}
