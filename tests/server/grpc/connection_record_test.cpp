// When a connection of gRPC has to go. Times are made up.
#include "server/grpc/connection_record.h"

#include <doctest/doctest.h>

#include <string>

#include "server/grpc/peer_debts.h"

namespace sconce::server::rpc {
namespace {

using namespace std::chrono_literals;
using Record = ConnectionRecord;
using Why = Record::Why;

struct Watched {
  Record::Clock::time_point time{1h};
  Record::Limits limits{.empty_streams = 100, .message = 1000, .pace = Pace::of(30s, 1000)};
  Record record{time};
  ConnectionLook now;
  uint64_t calls = 0;  // that the server has

  Why after(std::chrono::milliseconds passed) {
    time += passed;
    return record.look(now, time, limits, [this] { return calls; });
  }
  // Calls that were answered.
  void answered(uint64_t count) {
    now.traffic.streams += count;
    now.traffic.messages += count;
    now.traffic.succeeded += count;
    now.received += 100 * count;
  }
  void ended_without_message(uint64_t count) {
    now.traffic.streams += count;
    now.traffic.failed += count;
    now.received += 40 * count;
  }
};

TEST_CASE("a connection whose calls bring messages stays, however many they are") {
  Watched watched;
  for (int i = 0; i < 100; ++i) {
    watched.answered(10'000);
    CHECK(watched.after(50ms) == Why::kNone);
  }
  CHECK(watched.record.open() == 0);
}

TEST_CASE("a connection whose calls end without a message goes") {
  Watched watched;
  watched.ended_without_message(100);
  CHECK(watched.after(50ms) == Why::kNone);
  watched.ended_without_message(2);
  CHECK(watched.after(50ms) == Why::kEmptyStreams);
}

TEST_CASE("calls without a message are forgiven with time, and for those that are answered") {
  Watched slow, mixed;
  for (int i = 0; i < 1000; ++i) {
    slow.ended_without_message(9);
    CHECK(slow.after(1s) == Why::kNone);
    mixed.ended_without_message(50);
    mixed.answered(50);
    CHECK(mixed.after(50ms) == Why::kNone);
  }
}

TEST_CASE("cancelled calls count, though they brought a message") {
  Watched watched;
  watched.now.traffic.streams = watched.now.traffic.messages = watched.now.traffic.failed = 101;
  CHECK(watched.after(50ms) == Why::kEmptyStreams);
}

TEST_CASE("calls that wait for their messages are none without a message") {
  Watched watched;
  watched.limits.empty_streams = 0;
  watched.now.traffic.streams = 256;
  CHECK(watched.after(50ms) == Why::kNone);
  watched.now.traffic.messages = 256;
  CHECK(watched.after(50ms) == Why::kNone);
}

TEST_CASE("bytes that belong to no message have a limit") {
  Watched watched;
  watched.now.received = Record::kFreeBytes;
  CHECK(watched.after(50ms) == Why::kNone);
  watched.now.received += 2000;
  CHECK(watched.after(50ms) == Why::kBytes);
  Watched pings;
  for (int day = 0; day < 365; ++day) {
    pings.now.received += 24 * 360 * 17;  // one each ten seconds
    CHECK(pings.after(24h) == Why::kNone);
  }
  Watched calls;  // a call under way may bring a message
  calls.now.received = Record::kFreeBytes + 1500;
  calls.now.traffic.streams = 1;
  CHECK(calls.after(50ms) == Why::kNone);
}

TEST_CASE("a message that stalls half-way ends the connection, and one that comes does not") {
  Watched watched;
  watched.now.traffic.streams = 1;
  watched.now.received = 500;
  CHECK(watched.after(50ms) == Why::kNone);
  CHECK(watched.after(29s) == Why::kNone);
  watched.now.received += 17;  // a ping
  CHECK(watched.after(500ms) == Why::kNone);
  CHECK(watched.after(1s) == Why::kNone);  // suspected
  watched.now.received += 17;
  CHECK(watched.after(50ms) == Why::kNone);
  CHECK(watched.after(50ms) == Why::kStalled);

  Watched slow;
  slow.now.traffic.streams = 1;
  for (int i = 0; i < 100; ++i) {
    slow.now.received += 5000;  // at min_rate
    CHECK(slow.after(5s) == Why::kNone);
  }
}

TEST_CASE("a call that the server has is not stalled") {
  Watched watched;
  watched.now.traffic.streams = watched.now.traffic.messages = 1;
  watched.calls = 1;
  for (int i = 0; i < 20; ++i) CHECK(watched.after(20s) == Why::kNone);
  // It ends between the counts of gRPC and of the server.
  watched.calls = 0;
  CHECK(watched.after(31s) == Why::kNone);
  watched.now.traffic.succeeded = 1;
  CHECK(watched.after(50ms) == Why::kNone);
  CHECK(watched.after(1h) == Why::kNone);
}

TEST_CASE("a connection is of use when it brings a message") {
  Watched watched;
  const auto accepted = watched.time;
  watched.ended_without_message(3);
  watched.after(1s);
  CHECK(watched.record.useful() == accepted);
  watched.answered(1);
  watched.after(1s);
  CHECK(watched.record.useful() == accepted + 2s);
  watched.now.received += 17;
  watched.after(1s);
  CHECK(watched.record.useful() == accepted + 2s);
}

TEST_CASE("a connection begins with what its address has used up, less what time forgives") {
  const Record::Limits limits{.empty_streams = 100, .message = 1000, .pace = Pace::of(30s, 1000)};
  PeerDebts debts(limits);
  Watched first;
  first.ended_without_message(80);
  CHECK(first.after(50ms) == Why::kNone);
  debts.add("192.0.2.7", first.record.debt(), first.time);
  Watched next;
  next.record = Record(next.time, debts.take("192.0.2.7", next.time + 1s));  // 70 are left
  next.ended_without_message(30);
  CHECK(next.after(50ms) == Why::kNone);
  next.ended_without_message(10);
  CHECK(next.after(50ms) == Why::kEmptyStreams);
  CHECK(debts.size() == 0);
  // Of others it knows nothing, and no connection begins with more than one may use.
  debts.add("192.0.2.8", {1e9, 1e12}, next.time);
  debts.add("192.0.2.8", {1e9, 1e12}, next.time);
  CHECK_FALSE(debts.take("192.0.2.9", next.time).any());
  const Record::Debt most = debts.take("192.0.2.8", next.time);
  CHECK(most.empty == 100);
  CHECK(most.bytes == Record::kFreeBytes + 1000);
  Watched useful;
  useful.record = Record(useful.time, most);
  useful.answered(1);
  CHECK(useful.after(50ms) == Why::kNone);
  CHECK(useful.record.debt().bytes == 0);
  // In time nothing is left.
  debts.add("192.0.2.8", most, next.time);
  CHECK(debts.take("192.0.2.8", next.time + 11s).empty == 0);
  debts.add("192.0.2.8", most, next.time);
  CHECK_FALSE(debts.take("192.0.2.8", next.time + 61s).any());
}

TEST_CASE("what is kept of addresses is bounded") {
  const Record::Limits limits{.empty_streams = 100, .message = 1000, .pace = Pace::of(30s, 1000)};
  PeerDebts debts(limits);
  Record::Clock::time_point time{1h};
  for (int i = 0; i < 3000; ++i) debts.add(std::to_string(i), {50, 0}, time += 1ms);
  CHECK(debts.size() <= PeerDebts::kMost);
  CHECK(debts.take("2999", time).empty == 50);
  CHECK_FALSE(debts.take("0", time).any());
}

}  // namespace
}  // namespace sconce::server::rpc
