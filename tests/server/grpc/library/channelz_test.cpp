#include "server/grpc/library/channelz.h"

#include <doctest/doctest.h>
#include <grpcpp/grpcpp.h>

namespace sconce::server::rpc {
namespace {

TEST_CASE("channelz: a client's address is as a caller's") {
  CHECK(peer_of("ipv4:192.0.2.7:50000") == "192.0.2.7:50000");
  CHECK(peer_of("ipv6:%5B::1%5D:50000") == "[::1]:50000");
  CHECK(peer_of("ipv6:[2001:db8::1]:7") == "[2001:db8::1]:7");
}

TEST_CASE("channelz: a socket's document has its counters, and what is 0 is left out") {
  const GrpcTraffic traffic = traffic_in(
      R"({"socket":{"data":{"lastRemoteStreamCreatedTimestamp":"2026-11-29T15:06:48.5Z","messagesReceived":"7",)"
      R"("streamsFailed":"2","streamsStarted":"12","streamsSucceeded":"9"},"ref":{"name":"x","socketId":"5"}}})");
  CHECK(traffic.streams == 12);
  CHECK(traffic.succeeded == 9);
  CHECK(traffic.failed == 2);
  CHECK(traffic.messages == 7);
  CHECK(traffic_in(R"({"socket":{"ref":{"name":"x","socketId":"5"}}})").streams == 0);
  CHECK(traffic_in("").messages == 0);
}

}  // namespace
}  // namespace sconce::server::rpc
