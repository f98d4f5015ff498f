#include "package_format/files/page_copy.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace sconce;

TEST_CASE("page copy: pages are copied once, and no others") {
  std::vector<std::byte> source(3 * 4096 + 100, std::byte{1});
  PageCopy copy(source);
  REQUIRE(copy.bytes().size() == source.size());
  copy.take({4000, 0});
  copy.take({4095, 2});           // the first two pages
  copy.take({3 * 4096 + 99, 1});  // the last, which is none in full
  std::fill(source.begin(), source.end(), std::byte{2});
  copy.take({0, source.size()});
  const auto holds = [&](size_t begin, size_t end, int value) {
    return std::all_of(copy.bytes().begin() + static_cast<ptrdiff_t>(begin),
                       copy.bytes().begin() + static_cast<ptrdiff_t>(end),
                       [&](std::byte b) { return b == std::byte(value); });
  };
  CHECK(holds(0, 8192, 1));
  CHECK(holds(8192, 12288, 2));
  CHECK(holds(12288, source.size(), 1));
}

TEST_CASE("page copy: of nothing") {
  PageCopy copy({});
  copy.take({0, 0});
  CHECK(copy.bytes().empty());
}
