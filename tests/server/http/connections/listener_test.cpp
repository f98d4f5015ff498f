#include "server/http/connections/listener.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/http/connections/served.h"

namespace sconce::server::http {

using namespace sconce::server::test;
using namespace std::chrono_literals;

namespace {

const Address kAnyPort{"127.0.0.1", 0};

ServerConfig with_limits(int64_t connections, int64_t side = 100) {
  ServerConfig config = Served::defaults();
  config.max_connections = connections;
  config.max_side_connections = side;
  return config;
}

// The kernel completes a connection to a socket that listens before anybody accepts it. Null: refused.
std::optional<Client> connect_to(const Listener& listener) {
  const std::string address = listener.address();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(socket.get() >= 0);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    REQUIRE(errno == ECONNREFUSED);
    return std::nullopt;
  }
  REQUIRE(::fcntl(socket.get(), F_SETFL, O_NONBLOCK) == 0);
  return Client(std::move(socket));
}

// Turns until it is true. A busy kernel may take a moment to pass on what was sent.
bool becomes(Served& served, const std::function<bool()>& condition) {
  for (const auto end = Clock::now() + 10s; !condition(); std::this_thread::yield()) {
    if (Clock::now() > end) return false;
    served.settle();
  }
  return true;
}

// Turns until so many connections were accepted, and some turns more.
bool accepts(Served& served, size_t connections) {
  const bool come = becomes(served, [&] { return served.streams.size() >= connections; });
  served.settle();
  return come && served.streams.size() == connections;
}

// Whether it gets an answer, which is its last.
bool is_answered(Served& served, Client& client) {
  client.get("/soon", "Connection: close\r\n");
  std::string answer;
  return becomes(served, [&] { return (answer += client.take()).ends_with("soon"); }) &&
         becomes(served, [&] { return client.ended(); });
}

}  // namespace

TEST_CASE("listener: a connection is accepted when it comes, and served") {
  Served served;
  Listener listener(served.io, {&served.io}, kAnyPort, kPublic);
  CHECK(listener.is_loopback());
  listener.start();
  served.settle();
  CHECK(listener.needs_no_look());
  CHECK(served.open() == 0);
  for (int i = 0; i < 3; ++i) {
    std::optional<Client> client = connect_to(listener);
    REQUIRE(client);
    CHECK(accepts(served, served.streams.size() + 1));
    CHECK(served.open() == 1);
    CHECK(served.stream(served.streams.size() - 1).peer().starts_with("127.0.0.1:"));
    CHECK(is_answered(served, *client));
    CHECK(served.open() == 0);
  }
}

TEST_CASE("listener: I/O threads have connections in turn") {
  Served a, b;
  Listener listener(a.io, {&a.io, &b.io}, kAnyPort, kPublic);
  listener.start();
  std::vector<std::optional<Client>> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(connect_to(listener));
  CHECK(accepts(a, 3));
  CHECK(accepts(b, 2));
  CHECK(a.open() == 5);  // all of the listener's count together
}

TEST_CASE("listener: at its limit the idlest connection makes room, once one is idle") {
  Served served(with_limits(2));
  Listener listener(served.io, {&served.io}, kAnyPort, kPublic);
  listener.start();
  std::optional<Client> first = connect_to(listener);
  CHECK(accepts(served, 1));
  served.pass(200ms);
  std::optional<Client> second = connect_to(listener);
  CHECK(accepts(served, 2));
  std::optional<Client> third = connect_to(listener);
  CHECK(becomes(served, [&] { return !listener.needs_no_look(); }));
  CHECK(served.streams.size() == 2);
  served.after(99ms);  // of the first, 299 ms
  CHECK(served.streams.size() == 2);
  served.pass(100ms);
  REQUIRE(accepts(served, 3));
  CHECK(served.open() == 2);
  CHECK(first->ended());
  CHECK(is_answered(served, *second));
  CHECK(is_answered(served, *third));
}

TEST_CASE("listener: at its limit connections wait while all others have requests under way") {
  Served served(with_limits(1));
  Listener listener(served.io, {&served.io}, kAnyPort, kPublic);
  listener.start();
  std::optional<Client> run = connect_to(listener);
  run->get("/task");
  CHECK(becomes(served, [&] { return served.notes.size() == 2; }));
  std::optional<Client> next = connect_to(listener);
  CHECK(becomes(served, [&] { return !listener.needs_no_look(); }));
  served.after(1h);
  CHECK(served.streams.size() == 1);
  served.stream().let_go("done");
  served.settle();
  served.pass(400ms);
  REQUIRE(accepts(served, 2));
  CHECK(run->answer().body == "done");
  CHECK(is_answered(served, *next));
}

TEST_CASE("listener: a connection that ends makes room at the next tick") {
  Served served(with_limits(1));
  Listener listener(served.io, {&served.io}, kAnyPort, kPublic);
  listener.start();
  std::optional<Client> first = connect_to(listener);
  CHECK(accepts(served, 1));
  std::optional<Client> second = connect_to(listener);
  CHECK(becomes(served, [&] { return !listener.needs_no_look(); }));
  CHECK(served.streams.size() == 1);
  first->leave();
  CHECK(becomes(served, [&] { return served.closed() == 1; }));
  served.pass(100ms);
  CHECK(accepts(served, 2));
  CHECK(served.open() == 1);
}

TEST_CASE("listener: the idlest connection of all I/O threads makes room") {
  Served a(with_limits(2)), b;
  Listener listener(a.io, {&a.io, &b.io}, kAnyPort, kPublic);
  listener.start();
  std::optional<Client> of_a = connect_to(listener), of_b = connect_to(listener);
  CHECK(accepts(a, 1));
  CHECK(accepts(b, 1));
  Served::pass(1s);
  of_a->get("/soon");  // so that of_b is the idlest
  CHECK(becomes(a, [&] { return !of_a->answers().empty(); }));
  std::optional<Client> next = connect_to(listener);
  Served::pass(400ms);
  CHECK(becomes(a, [&] {
    b.settle();
    return a.streams.size() == 2;
  }));
  CHECK(of_b->ended());
  CHECK_FALSE(of_a->ended());
  CHECK(a.open() == 2);
}

TEST_CASE("listener: listeners of metrics and administration have allowances of their own") {
  Served served(with_limits(1, 2));
  Listener of_public(served.io, {&served.io}, kAnyPort, kPublic);
  Listener of_metrics(served.io, {&served.io}, kAnyPort, kMetrics);
  of_public.start();
  of_metrics.start();
  std::vector<std::optional<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connect_to(of_public));
    clients.push_back(connect_to(of_metrics));
  }
  CHECK(accepts(served, 3));
  CHECK(served.connections.of(kPublic) == 1);
  CHECK(served.connections.of(kMetrics) == 2);
  CHECK(served.connections.of(kAdmin) == 0);
}

TEST_CASE("listener: its end accepts what waits already, and no more") {
  Served served;
  Listener listener(served.io, {&served.io}, kAnyPort, kPublic);
  listener.start();
  std::vector<std::optional<Client>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(connect_to(listener));
  listener.stop();
  CHECK(listener.needs_no_look());
  CHECK_FALSE(connect_to(listener));
  served.settle();
  CHECK(served.open() == 3);
  for (std::optional<Client>& client : clients) CHECK(is_answered(served, *client));
}

TEST_CASE("listener: without descriptors connections wait, and an idle one makes room") {
  Served served;
  Listener listener(served.io, {&served.io}, kAnyPort, kPublic);
  listener.start();
  std::optional<Client> idle = connect_to(listener), next = connect_to(listener);
  REQUIRE(next);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  std::vector<Descriptor> taken;
  // All but one.
  rlimit low = before;
  low.rlim_cur = 256;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  for (int one = ::dup(0); one >= 0; one = ::dup(0)) taken.emplace_back(one);
  const int problem = errno;
  REQUIRE_FALSE(taken.empty());
  taken.pop_back();
  served.settle();
  const size_t accepted = served.streams.size();
  served.after(500ms);
  const size_t later = served.streams.size();
  taken.clear();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(problem == EMFILE);
  CHECK(accepted == 1);
  CHECK(later == 2);
  CHECK(idle->ended());
  CHECK(is_answered(served, *next));
}

}  // namespace sconce::server::http
