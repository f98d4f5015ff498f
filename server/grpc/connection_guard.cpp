#include "server/grpc/connection_guard.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "server/support/failure.h"

namespace sconce::server::rpc {
namespace {

using Clock = ConnectionGuard::Clock;
using Why = ConnectionRecord::Why;

// gRPC's counters of a connection are read at this interval, or after this number of bytes.
constexpr std::chrono::seconds kAskEach{1};
constexpr uint64_t kAskAfter = 64 * 1024;
// A connection that has sent a message within this time is not shut down to make room.
constexpr std::chrono::seconds kBrings{1};
// Maximum wait for a shut-down connection to close, before another one is shut down.
constexpr std::chrono::seconds kCloses{1};
// Ended calls are still counted for a moment, so there may be more calls than HTTP/2 streams.
constexpr uint64_t kCallsPerStream = 2;

// The kernel's tcp_info, which has more members than the C library's.
struct TcpCounters {
  tcp_info known;
  uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
};
static_assert(offsetof(TcpCounters, pacing_rate) == 104);

uint64_t received_by(int descriptor) noexcept {
  TcpCounters counters{};
  socklen_t size = sizeof counters;
  return ::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &counters, &size) == 0 ? counters.bytes_received : 0;
}

// A client's address in gRPC's form: without a zone, and IPv4-mapped IPv6 as IPv4.
std::string peer_of(int descriptor) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  char text[INET6_ADDRSTRLEN] = {};
  if (storage.ss_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in&>(storage);
    ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    return std::string(text).append(":").append(std::to_string(ntohs(address.sin_port)));
  }
  if (storage.ss_family != AF_INET6) return {};
  const auto& address = reinterpret_cast<const sockaddr_in6&>(storage);
  const std::string port = std::to_string(ntohs(address.sin6_port));
  if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    ::inet_ntop(AF_INET, &address.sin6_addr.s6_addr[12], text, sizeof text);
    return std::string(text).append(":").append(port);
  }
  ::inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof text);
  return std::string("[").append(text).append("]:").append(port);
}

// The unit of which a client may own many: an address; for IPv6, its first half.
std::string network_of(const std::string& peer) {
  const std::string address = peer.substr(0, peer.rfind(':'));
  if (!address.starts_with('[')) return address;
  in6_addr bytes{};
  if (::inet_pton(AF_INET6, address.substr(1, address.size() - 2).c_str(), &bytes) != 1) return address;
  std::fill(bytes.s6_addr + 8, bytes.s6_addr + 16, uint8_t{0});
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET6, &bytes, text, sizeof text);
  return text;
}

const char* reason_of(Why why) noexcept {
  switch (why) {
    case Why::kEmptyStreams:
      return "too many of its calls ended without a message (setting grpc_empty_streams)";
    case Why::kBytes:
      return "it sends bytes that belong to no message";
    case Why::kStalled:
      return "a message stalled (settings body_timeout, min_rate)";
    case Why::kCalls:
      return "it has more calls in progress than grpc_streams";
    case Why::kRoom:
      return "it was idle for longest, and a new connection needs room (setting max_connections)";
    case Why::kNone:
      break;
  }
  return "";
}

}  // namespace

bool ConnectionGuard::is_open(const Connection& connection) noexcept {
  struct stat about {};
  return ::fstat(connection.descriptor, &about) == 0 && static_cast<uint64_t>(about.st_ino) == connection.socket;
}

bool ConnectionGuard::add(int descriptor) noexcept {
  struct stat about {};
  return ::fstat(descriptor, &about) == 0 && succeeds([&] {
           const Clock::time_point now = Clock::now();
           std::string peer = peer_of(descriptor), address = network_of(peer);
           const ConnectionRecord record(now, debts_.take(address, now));
           connections_.push_back(
               {descriptor, static_cast<uint64_t>(about.st_ino), std::move(peer), std::move(address), 0, record});
         });
}

size_t ConnectionGuard::forget_closed() noexcept { return forget_closed(Clock::now()); }

size_t ConnectionGuard::forget_closed(Clock::time_point now) noexcept {
  return std::erase_if(connections_, [&](const Connection& connection) {
    if (is_open(connection)) return false;
    succeeds([&] { debts_.add(connection.address, connection.record.debt(), now); });
    return true;
  });
}

// gRPC numbers a connection after its handshake.
void ConnectionGuard::find_numbers(GrpcServer& server) {
  if (std::none_of(connections_.begin(), connections_.end(), [](const Connection& c) { return c.number == 0; })) return;
  std::map<std::string, int64_t, std::less<>> found;
  server.connections(last_number_, [&](int64_t number, std::string_view peer) {
    found[std::string(peer)] = number;
    last_number_ = number;
  });
  if (found.empty()) return;
  for (Connection& connection : connections_) {
    if (connection.number != 0) continue;
    if (const auto at = found.find(connection.peer); at != found.end()) connection.number = at->second;
  }
}

const ConnectionGuard::UsesByPeer& ConnectionGuard::uses(GrpcServer& server) {
  if (knows_uses_) return uses_;
  uses_.clear();
  server.visit_calls([this](const std::string& peer, bool works) {
    Uses& uses = uses_[peer];
    ++uses.calls;
    if (works) ++uses.working;
  });
  knows_uses_ = true;
  return uses_;
}

ConnectionGuard::Uses ConnectionGuard::uses_of(const Connection& connection, GrpcServer& server) {
  const UsesByPeer& all = uses(server);
  const auto found = all.find(connection.peer);
  return found == all.end() ? Uses{} : found->second;
}

void ConnectionGuard::look_at(Connection& connection, GrpcServer& server, Clock::time_point now) {
  const uint64_t received = received_by(connection.descriptor), seen = connection.record.received();
  if (received != connection.received) {
    connection.received = received;
    connection.moved = now;
    busy_ = true;
  }
  // A kernel that does not count bytes returns 0.
  const bool news =
      received - seen >= kAskAfter || ((received != seen || received == 0) && now - connection.asked >= kAskEach);
  if (connection.shut || (!news && now < connection.record.stalls())) return;
  connection.asked = now;
  ConnectionLook look{received, {}};
  if (connection.number != 0 && !server.traffic(connection.number, look.traffic)) return;
  const Why why = connection.record.look(look, now, limits_, [&] { return uses_of(connection, server).calls; });
  if (why != Why::kNone) shut_down(connection, why, now);
}

size_t ConnectionGuard::look(GrpcServer& server, Clock::time_point now) noexcept {
  const size_t closed = forget_closed(now);
  busy_ = knows_uses_ = false;
  succeeds([&] {
    find_numbers(server);
    for (Connection& connection : connections_) look_at(connection, server, now);
    if (server.calls() <= most_calls_) return;
    for (Connection& connection : connections_) {
      if (!connection.shut && uses_of(connection, server).calls > kCallsPerStream * most_calls_)
        shut_down(connection, Why::kCalls, now);
    }
  });
  return closed;
}

bool ConnectionGuard::make_room(GrpcServer& server, Clock::time_point now) noexcept {
  bool made = false;
  succeeds([&] {
    made = std::any_of(connections_.begin(), connections_.end(),
                       [&](const Connection& c) { return c.shut && now - c.shut_at < kCloses; });
    if (made) return;
    knows_uses_ = false;
    find_numbers(server);
    for (;;) {
      Connection* idlest = nullptr;
      for (Connection& connection : connections_) {
        if (connection.shut || (idlest != nullptr && idlest->record.useful() <= connection.record.useful())) continue;
        const Uses uses = uses_of(connection, server);
        if (uses.working > 0) continue;
        if (connection.record.open() > uses.calls && now - connection.moved < kBrings) continue;
        idlest = &connection;
      }
      if (idlest == nullptr) return;
      // It may have sent a message since the last poll.
      const Clock::time_point useful = idlest->record.useful();
      idlest->asked = {};
      look_at(*idlest, server, now);
      if (idlest->record.useful() != useful) continue;
      if (!idlest->shut) shut_down(*idlest, Why::kRoom, now);
      made = true;
      return;
    }
  });
  return made;
}

void ConnectionGuard::shut_down(Connection& connection, Why why, Clock::time_point now) noexcept {
  // gRPC may close the descriptor at any time, and its number may then be another file's; a duplicate is safe.
  const int copy = ::fcntl(connection.descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return;
  struct stat about {};
  const bool same = ::fstat(copy, &about) == 0 && static_cast<uint64_t>(about.st_ino) == connection.socket;
  if (same) {
    // Counted first, so that a client that has seen the end finds it in the metrics.
    counters_.closed[why].fetch_add(1, std::memory_order_relaxed);
    ::shutdown(copy, SHUT_RDWR);
  }
  ::close(copy);
  if (!same) return;
  connection.shut = true;
  connection.shut_at = now;
  succeeds([&] { log_warn(lines_, "gRPC connection of {} closed: {}", connection.peer, reason_of(why)); });
}

}  // namespace sconce::server::rpc
