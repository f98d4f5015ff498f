#include "server/http/client/admin_client.h"

#include <doctest/doctest.h>

#include "tests/errors.h"
#include "tests/server/http/client/scripted_server.h"

namespace sconce::server::http {

using namespace std::chrono_literals;
using namespace test;

TEST_CASE("admin client: a download needs a length") {
  std::string head = "HTTP/1.1 200 OK\r\nX-Name: n\r\n";
  Scripted server([&](Peer& peer) {
    peer.head();
    peer.write(head + "\r\nabcdef");
  });
  const AdminClient client(parse_admin_server(server.url("/prefix")), "token", 5s, {});
  std::string came;
  const auto begin = [&](const AnswerHead& found, uint64_t bytes) {
    came = found.field("x-name") + std::to_string(bytes);
  };
  const auto take = [&](std::span<const std::byte> bytes) {
    came.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  Answer answer = client.download("/x", begin, take);
  CHECK(answer.problem == "no answer: its body has no length");
  CHECK(answer.status == 0);
  CHECK(came == "");
  head += "Content-Length: 6\r\n";
  answer = client.download("/x", begin, take);
  CHECK(answer.ok());
  CHECK(came == "n6abcdef");
  head += "Content-Length: 7\r\n";
  answer = client.download("/x", begin, take);
  CHECK(answer.status == 0);
  CHECK(answer.reason() != "");
}

TEST_CASE("admin client: a stream is followed until it ends, or the caller has enough") {
  Scripted server([](Peer& peer) {
    const std::string head = peer.head();
    CHECK(contains(head, "\r\nAuthorization: Bearer token\r\n"));
    CHECK(contains(head, "\r\nAccept: text/event-stream\r\n"));
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    if (contains(head, "/endless")) peer.ended();
    peer.write("0\r\n\r\n");
  });
  const AdminClient client(parse_admin_server(server.url("")), "token", 5s, {});
  std::string came;
  const auto take = [&](std::string_view text) { came += text; };
  Answer answer = client.follow("/short", take, [] { return true; });
  CHECK(answer.problem == "the stream ended: the server closed the connection");
  CHECK(answer.status == 0);
  CHECK(came == "one");
  came.clear();
  client.follow("/endless", take, [&] { return came.empty(); });
  CHECK(came == "one");
}

}  // namespace sconce::server::http
