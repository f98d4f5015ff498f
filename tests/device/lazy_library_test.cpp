#include "src/device/lazy_library.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "sconce/error.h"
#include "tests/errors.h"

SCONCE_LAZY_LIBRARY(fixture);
SCONCE_LAZY_LIBRARY(racing);
SCONCE_LAZY_LIBRARY(absent);
SCONCE_LAZY_LIBRARY(outdated);

extern "C" {
double lazy_fixture_mixed(int64_t, double, int64_t, double, int64_t, double, int64_t, double, int64_t, double, int64_t,
                          double, int64_t, double, int64_t, double, double);
double lazy_fixture_sum(int, ...);
struct LazyFixtureBig {
  int64_t values[5];
};
LazyFixtureBig lazy_fixture_struct(int64_t);
int64_t lazy_racing_identity(int64_t);
int lazy_absent_call(int);
int lazy_fixture_identity_again(int);
}

using namespace sconce;

namespace {

std::string message_of(LazyLibrary& library) {
  return error_from(ErrorCode::kUnavailable, [&] { require_library(library); });
}

}  // namespace

TEST_CASE("lazy library: the first call keeps every argument, later calls jump straight") {
  CHECK(!sconce_lazy_fixture.open.load());
  CHECK(dlopen(sconce_lazy_fixture.soname, RTLD_NOW | RTLD_NOLOAD) == nullptr);
  for (int round = 0; round < 2; ++round) {
    const double mixed = lazy_fixture_mixed(1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9);
    CHECK(mixed == doctest::Approx(987654321.12345678).epsilon(1e-15));
    CHECK(sconce_lazy_fixture.open.load());
  }
  void* handle = dlopen(sconce_lazy_fixture.soname, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(handle != nullptr);
  CHECK(sconce_lazy_fixture.targets[0] == dlsym(handle, "lazy_fixture_mixed"));
  dlclose(handle);
  CHECK(lazy_fixture_sum(3, 1.0, 2.0, 4.0) == 7.0);
  const LazyFixtureBig big = lazy_fixture_struct(40);
  for (int i = 0; i < 5; ++i) CHECK(big.values[i] == 40 + i);
}

TEST_CASE("lazy library: many threads open it at once") {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int64_t t = 0; t < 8; ++t)
    threads.emplace_back([t, &right] {
      for (int64_t i = 0; i < 1000; ++i) {
        require_library(sconce_lazy_racing);
        right += lazy_racing_identity(t * 1000 + i) == t * 1000 + i;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 8000);
}

TEST_CASE("lazy library: one that is missing is an error that names its package, from a call too") {
  const std::string text = message_of(sconce_lazy_absent);
  CHECK(text.find("absent is needed but cannot be opened: install the package libabsent1") == 0);
  CHECK(text.find("libsconce-absent.so.1") != std::string::npos);
  CHECK(!try_open_library(sconce_lazy_absent));
  CHECK(!sconce_lazy_absent.open.load());
  CHECK_THROWS_AS(lazy_absent_call(1), Error);
  CHECK_THROWS_AS(lazy_absent_call(1), Error);
}

TEST_CASE("lazy library: one that lacks a function is an error that names it") {
  const std::string text = message_of(sconce_lazy_outdated);
  CHECK(text.find("has no function lazy_fixture_identity_again") != std::string::npos);
  CHECK_THROWS_AS(lazy_fixture_identity_again(1), Error);
}
