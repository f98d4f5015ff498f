// A gRPC load generator that costs less than the servers: calls in flight repeat as soon as they are answered. One
// thread, epoll, and as much of HTTP/2 (RFC 9113) as that needs. Like Triton's own client, it puts six calls on a
// connection.
//
// usage: grpc_load PORT calls|streams AT_A_TIME SECONDS MESSAGE_FILE EXPECTED_FILE
// "calls" are ModelInfer, each a stream of HTTP/2; of "streams" (ModelStreamInfer) each keeps one message in flight.
// Every answer must have EXPECTED_FILE's bytes in it. Prints requests per second, p50, p99 and p99.9 in microseconds,
// as JSON.
#include <sys/epoll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/bench/http/connection.h"

using namespace sconce::bench;

namespace {

constexpr size_t kCallsAConnection = 6;
constexpr size_t kHead = 9;
constexpr int64_t kFirstWindow = 65535;
constexpr uint32_t kLargestWindow = (1U << 31) - 1;
enum Type : uint8_t { kData, kHeaders, kPriority, kReset, kSettings, kPromise, kPing, kGoAway, kWindow };
constexpr uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;
constexpr uint8_t kInitialWindow = 4;  // a key of SETTINGS

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

void append_number(std::string& to, uint64_t value, int bytes) {
  while (bytes-- > 0) to.push_back(static_cast<char>(value >> (8 * bytes)));
}

uint32_t number_at(const char* from, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(from[i]);
  return value;
}

void append_frame(std::string& to, Type type, uint8_t flags, uint32_t stream, std::string_view payload) {
  append_number(to, payload.size(), 3);
  append_number(to, type, 1);
  append_number(to, flags, 1);
  append_number(to, stream, 4);
  to += payload;
}

// The request's headers by HPACK (RFC 7541): a connection's first request puts four of them into the table, later ones
// name their places there.
std::string first_headers(std::string_view method) {
  std::string block = "\x83\x86";  // :method POST, :scheme http
  const auto append = [&](char name, std::string_view value) {
    block.push_back(name);
    block.push_back(static_cast<char>(value.size()));
    block += value;
  };
  append('\x44', std::string("/inference.GRPCInferenceService/").append(method));  // :path
  append('\x41', "localhost");                                                     // :authority
  append('\x5f', "application/grpc");                                              // content-type
  append('\x40', "te");
  block.push_back(8);
  return block += "trailers";
}
constexpr std::string_view kLaterHeaders = "\x83\x86\xc1\xc0\xbf\xbe";

struct Call {
  uint32_t stream = 0;
  int64_t window = 0;
  std::string answer;  // what has come of it, with gRPC's five bytes before the message
  bool answered = false;
  Clock::time_point sent;
};

class Connection {
 public:
  Connection(uint16_t port, size_t calls, bool streams, const std::string& message, std::string_view expected,
             std::vector<float>& latencies)
      : fd_(connect_to(port)), streams_(streams), expected_(expected), latencies_(latencies), calls_(calls) {
    append_number(message_, 0, 1);
    append_number(message_, message.size(), 4);
    message_ += message;
    out_ = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    std::string settings, more;
    append_number(settings, kInitialWindow, 2);
    append_number(settings, kLargestWindow, 4);
    append_frame(out_, kSettings, 0, 0, settings);
    // All that a measurement receives fits, so no window is opened later.
    append_number(more, kLargestWindow - kFirstWindow, 4);
    append_frame(out_, kWindow, 0, 0, more);
    for (Call& call : calls_) open(call);
  }

  int fd() const { return fd_; }

  void flush() {
    send_all(fd_, out_);
    out_.clear();
  }

  void read(std::vector<char>& buffer) {
    in_.append(buffer.data(), receive(fd_, buffer.data(), buffer.size()));
    size_t at = 0;
    while (in_.size() - at >= kHead) {
      const size_t size = number_at(&in_[at], 3);
      if (in_.size() - at < kHead + size) break;
      frame(static_cast<Type>(in_[at + 3]), static_cast<uint8_t>(in_[at + 4]), number_at(&in_[at + 5], 4),
            std::string_view(in_).substr(at + kHead, size));
      at += kHead + size;
    }
    in_.erase(0, at);
    if (!out_.empty()) flush();
  }

 private:
  void open(Call& call) {
    call.stream = next_;
    call.window = first_window_;
    by_stream_[next_] = &call;
    append_frame(out_, kHeaders, kEndHeaders, next_,
                 next_ == 1 ? first_headers(streams_ ? "ModelStreamInfer" : "ModelInfer") : std::string(kLaterHeaders));
    next_ += 2;
    ask(call);
  }

  // Once both windows have room for it.
  void ask(Call& call) {
    const auto size = static_cast<int64_t>(message_.size());
    if (window_ < size || call.window < size) {
      waiting_.push_back(&call);
      return;
    }
    window_ -= size;
    call.window -= size;
    append_frame(out_, kData, streams_ ? 0 : kEndStream, call.stream, message_);
    call.sent = Clock::now();
  }

  void ask_those_waiting() {
    std::vector<Call*> waiting;
    waiting.swap(waiting_);
    for (Call* call : waiting) ask(*call);
  }

  void frame(Type type, uint8_t flags, uint32_t stream, std::string_view payload) {
    const auto found = by_stream_.find(stream);
    Call* call = found == by_stream_.end() ? nullptr : found->second;
    switch (type) {
      case kData:
        if (call != nullptr) data(*call, payload);
        break;
      case kHeaders:
        if (call != nullptr && (flags & kEndStream) != 0) end(*call);
        break;
      case kReset:
        if (call != nullptr) refuse("the server reset a call");
        break;
      case kSettings:
        if ((flags & kAck) == 0) settings(payload);
        break;
      case kPing:
        if ((flags & kAck) == 0) append_frame(out_, kPing, kAck, 0, payload);
        break;
      case kGoAway:
        refuse("the server closes the connection");
      case kWindow:
        (stream == 0 ? window_ : call != nullptr ? call->window : ended_) += number_at(payload.data(), 4);
        ask_those_waiting();
        break;
      default:
        break;
    }
  }

  void data(Call& call, std::string_view payload) {
    call.answer += payload;
    if (call.answer.size() < 5 || call.answer.size() < 5 + number_at(&call.answer[1], 4)) return;
    if (call.answer.find(expected_) == std::string::npos) refuse("an answer without the expected bytes");
    call.answer.clear();
    call.answered = true;
    if (!streams_) return;
    told(call);
    ask(call);
  }

  void end(Call& call) {
    if (streams_ || !call.answered) refuse("a call ended without an answer");
    call.answered = false;
    told(call);
    by_stream_.erase(call.stream);
    open(call);
  }

  void told(const Call& call) {
    latencies_.push_back(std::chrono::duration<float, std::micro>(Clock::now() - call.sent).count());
  }

  void settings(std::string_view payload) {
    for (; payload.size() >= 6; payload.remove_prefix(6)) {
      if (number_at(payload.data(), 2) != kInitialWindow) continue;
      const int64_t window = number_at(payload.data() + 2, 4);
      for (Call& call : calls_) call.window += window - first_window_;
      first_window_ = window;
    }
    append_frame(out_, kSettings, kAck, 0, {});
    ask_those_waiting();
  }

  const int fd_;
  const bool streams_;
  const std::string_view expected_;
  std::vector<float>& latencies_;
  std::vector<Call> calls_;
  std::unordered_map<uint32_t, Call*> by_stream_;
  std::vector<Call*> waiting_;
  uint32_t next_ = 1;
  int64_t first_window_ = kFirstWindow, window_ = kFirstWindow, ended_ = 0;
  std::string message_, in_, out_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const auto port = static_cast<uint16_t>(std::atoi(argv[1]));
  const bool streams = std::string_view(argv[2]) == "streams";
  const auto at_a_time = static_cast<size_t>(std::atoi(argv[3]));
  const std::string message = content_of(argv[5]), expected = content_of(argv[6]);
  std::vector<float> latencies;
  latencies.reserve(1 << 22);
  std::vector<Connection> connections;
  connections.reserve(at_a_time);
  for (size_t left = at_a_time; left > 0; left -= std::min(left, kCallsAConnection)) {
    connections.emplace_back(port, std::min(left, kCallsAConnection), streams, message, expected, latencies);
  }
  const int epoll = epoll_create1(0);
  for (size_t i = 0; i < connections.size(); ++i) {
    epoll_event event{EPOLLIN, {.u64 = i}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd(), &event);
    connections[i].flush();
  }
  std::vector<char> buffer(1 << 16);
  // The first tenth warms the server.
  const double seconds = std::atof(argv[4]);
  const auto warm = Clock::now() + seconds_of(seconds / 10);
  const auto end = warm + seconds_of(seconds);
  bool measured = false;
  auto start = warm;
  auto now = Clock::now();
  while (now < end) {
    epoll_event events[64];
    const int count = epoll_wait(epoll, events, 64, 1000);
    for (int i = 0; i < count; ++i) connections[events[i].data.u64].read(buffer);
    now = Clock::now();
    if (!measured && now >= warm) {
      measured = true;
      latencies.clear();
      start = now;
    }
  }
  if (latencies.empty()) refuse("no answers");
  const double took = std::chrono::duration<double>(now - start).count();
  std::sort(latencies.begin(), latencies.end());
  std::printf("{\"requests_per_second\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f}\n",
              static_cast<double>(latencies.size()) / took, quantile(latencies, 0.5), quantile(latencies, 0.99),
              quantile(latencies, 0.999));
  return 0;
}
