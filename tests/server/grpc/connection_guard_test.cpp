// Connections are ends of socket pairs, and gRPC's part is played by a server that knows none of them.
#include "server/grpc/connection_guard.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <string_view>

#include "server/support/files/descriptor.h"

namespace sconce::server::rpc {
namespace {

const telemetry::CallCounters* watched = nullptr;  // by shutdown() below
uint64_t counted_before_shutdown = 0;

}  // namespace

// Replaces the C library's: sees which closed connections are counted when a client can first see the end.
extern "C" int shutdown(int descriptor, int how) noexcept {
  if (watched != nullptr)
    for (const auto& closed : watched->closed) counted_before_shutdown += closed.load();
  return static_cast<int>(::syscall(SYS_shutdown, descriptor, how));
}

namespace {

class SilentServer final : public GrpcServer {
 public:
  void serve(int) noexcept override {}
  void set_ready(bool) noexcept override {}
  void look() noexcept override {}
  void stop(std::chrono::steady_clock::time_point) noexcept override {}
  void connections(int64_t, const std::function<void(int64_t, std::string_view)>&) override {}
  bool traffic(int64_t, GrpcTraffic&) noexcept override { return true; }
  void visit_calls(const std::function<void(const std::string&, bool)>&) override {}
  uint64_t calls() const noexcept override { return 0; }
};

struct Watched {
  Watched() {
    watched = &counters;
    counted_before_shutdown = 0;
  }
  ~Watched() { watched = nullptr; }
  struct Pair {
    Descriptor client, server;
  };
  static Pair connect() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    return {Descriptor(ends[0]), Descriptor(ends[1])};
  }
  static bool has_ended(const Descriptor& client) {
    char byte;
    return ::recv(client.get(), &byte, 1, 0) == 0;
  }

  telemetry::CallCounters counters;
  LogLimit lines;
  SilentServer server;
  ConnectionGuard guard{{10, 1000, {}}, 10, counters, lines};
};

}  // namespace

TEST_CASE("connection guard: a closed connection is counted before its client can see the end") {
  Watched watch;
  const Watched::Pair pair = Watched::connect();
  REQUIRE(watch.guard.add(pair.server.get()));
  CHECK_FALSE(Watched::has_ended(pair.client));
  CHECK(watch.guard.make_room(watch.server, ConnectionGuard::Clock::now()));
  CHECK(counted_before_shutdown == 1);
  CHECK(watch.counters.closed[telemetry::CallCounters::kRoom] == 1);
  CHECK(Watched::has_ended(pair.client));
}

TEST_CASE("connection guard: a descriptor that has become another file's is neither shut down nor counted") {
  Watched watch;
  Watched::Pair pair = Watched::connect(), other = Watched::connect();
  REQUIRE(watch.guard.add(pair.server.get()));
  REQUIRE(::dup2(other.server.get(), pair.server.get()) == pair.server.get());
  watch.guard.make_room(watch.server, ConnectionGuard::Clock::now());
  CHECK_FALSE(Watched::has_ended(other.client));
  CHECK(watch.counters.closed[telemetry::CallCounters::kRoom] == 0);
  CHECK(watch.guard.forget_closed() == 1);
  CHECK(watch.guard.size() == 0);
}

}  // namespace sconce::server::rpc
