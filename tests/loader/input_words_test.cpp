#include "src/loader/input_words.h"

#include <doctest/doctest.h>

#include <string>

using namespace sconce::loader;

namespace {

std::vector<int> ranks(const std::string& code) { return least_ranks(std::as_bytes(std::span(code))); }

}  // namespace

TEST_CASE("input words: each input has as many dimensions as its checks name") {
  using std::string_literals::operator""s;
  CHECK(ranks("") == std::vector<int>{});
  CHECK(ranks("input_handles[0]: unmatched dtype, \0"s) == std::vector<int>{0});
  CHECK(ranks("x\0input_handles[1]: unmatched dim value at 1, \0input_handles[0]: unmatched dtype, \0"
              "input_handles[1]: unmatched stride value at 2, \0input_handles[1]: dim value is too small at 0, \0"s) ==
        std::vector<int>{0, 3});
}

TEST_CASE("input words: other words count for nothing") {
  using std::string_literals::operator""s;
  CHECK(ranks("input_handles[0]: unmatched dtype or dim value, expected float32\0 at 7,"s) == std::vector<int>{0});
  CHECK(ranks("input_handles[").empty());
  CHECK(ranks("input_handles[0").empty());
  CHECK(ranks("input_handles[x]: unmatched dim value at 1, ").empty());
  CHECK(ranks("input_handles[-1]: unmatched dim value at 1, ").empty());
  CHECK(ranks("input_handles[99999999]: unmatched dim value at 1, ").empty());
  CHECK(ranks("input_handles[0]: unmatched dim value at 99, ") == std::vector<int>{0});
  CHECK(ranks("input_handles[0]: unmatched dim value at 1") == std::vector<int>{0});
}
