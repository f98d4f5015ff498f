#include "server/http/connections/connection_room.h"

#include <doctest/doctest.h>

namespace sconce::server::http {
namespace {

constexpr ConnectionRoom kDefaults{10'000, 100};

}  // namespace

TEST_CASE("connection room: a large limit of descriptors changes nothing") {
  for (const bool grpc : {false, true}) {
    const ConnectionRoom room = connection_room(1 << 20, kDefaults, grpc);
    CHECK(room.of_public == 10'000);
    CHECK(room.of_side == 100);
  }
}

TEST_CASE("connection room: a small one leaves room for side listeners and files") {
  for (const int64_t limit : {64, 128, 256, 1024, 4096, 11'000}) {
    CAPTURE(limit);
    for (const bool grpc : {false, true}) {
      const ConnectionRoom room = connection_room(limit, kDefaults, grpc);
      CHECK(room.of_public >= 1);
      CHECK(room.of_side >= 1);
      const int64_t all = room.of_public * (grpc ? 2 : 1) + 2 * room.of_side;
      CHECK(all + std::min<int64_t>(limit / 4, 1024) <= limit);
    }
  }
  CHECK(connection_room(256, kDefaults, false).of_public == 160);
  CHECK(connection_room(256, kDefaults, true).of_public == 80);
  CHECK(connection_room(8, kDefaults, true).of_public == 1);
}

TEST_CASE("connection room: no more than is wanted") {
  CHECK(connection_room(1024, {4, 2}, false).of_public == 4);
  CHECK(connection_room(1024, {4, 2}, false).of_side == 2);
}

}  // namespace sconce::server::http
