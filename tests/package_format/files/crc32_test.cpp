#include "package_format/files/crc32.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstring>
#include <vector>

using namespace sconce;

TEST_CASE("crc32 equals zlib's for every length, alignment and start value") {
  std::vector<std::byte> bytes(1400);
  uint32_t state = 12345;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  for (size_t size = 0; size <= 1100; ++size)
    for (size_t offset : {0, 1, 7, 16})
      for (uint32_t start : {0u, 0xdeadbeefu}) {
        const auto* data = reinterpret_cast<const Bytef*>(bytes.data() + offset);
        REQUIRE(sconce::crc32({bytes.data() + offset, size}, start) == ::crc32(start, data, static_cast<uInt>(size)));
      }
  const uint32_t whole = sconce::crc32(bytes);
  CHECK(whole == ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), 1400));
  CHECK(sconce::crc32(std::span(bytes).subspan(500), sconce::crc32(std::span(bytes).first(500))) == whole);
}

TEST_CASE("crc32 of the check string of the CRC catalogue") {
  std::byte digits[9];
  std::memcpy(digits, "123456789", 9);
  CHECK(sconce::crc32(digits) == 0xcbf43926u);
}
