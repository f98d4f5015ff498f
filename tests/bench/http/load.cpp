// A load generator that costs little: N keep-alive connections, each of which repeats its request as soon as the answer
// is complete. One thread, epoll, no HTTP library. Every answer must be the same, so its length is learnt once.
//
// usage: load PORT CONNECTIONS SECONDS REQUEST_FILE
// Prints requests per second, p50, p99 and p99.9 in microseconds, the bytes of an answer and its body, as JSON.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/http/connection.h"

using namespace sconce::bench;

namespace {

constexpr std::string_view kLength = "content-length: ";

// Reads one answer and returns it whole.
std::string read_answer(int fd) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const size_t head = text.find("\r\n\r\n");
    if (head != std::string::npos) {
      // Header names are case-insensitive.
      const auto name = std::search(text.begin(), text.end(), kLength.begin(), kLength.end(),
                                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
      const auto at = name == text.end() ? std::string::npos : static_cast<size_t>(name - text.begin());
      if (at == std::string::npos || at > head) {
        std::fprintf(stderr, "answer without a length:\n%s\n", text.c_str());
        std::exit(1);
      }
      if (text.size() >= head + 4 + std::strtoull(text.c_str() + at + kLength.size(), nullptr, 10)) return text;
    }
    text.append(buffer, receive(fd, buffer, sizeof buffer));
  }
}

struct Connection {
  int fd;
  size_t received = 0;
  Clock::time_point sent;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto port = static_cast<uint16_t>(std::atoi(argv[1]));
  const std::string request = content_of(argv[4]);
  std::vector<Connection> connections;
  for (int i = 0; i < std::atoi(argv[2]); ++i) connections.push_back({connect_to(port), 0, {}});

  std::string answer;
  for (int i = 0; i < 50; ++i) {
    for (const Connection& c : connections) {
      send_all(c.fd, request);
      answer = read_answer(c.fd);
      if (!answer.starts_with("HTTP/1.1 200")) {
        std::fprintf(stderr, "unexpected answer:\n%s\n", answer.c_str());
        return 1;
      }
    }
  }

  const int epoll = epoll_create1(0);
  for (size_t i = 0; i < connections.size(); ++i) {
    epoll_event event{EPOLLIN, {.u64 = i}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &event);
    connections[i].sent = Clock::now();
    send_all(connections[i].fd, request);
  }
  std::vector<float> latencies;
  latencies.reserve(1 << 22);
  std::vector<char> buffer(1 << 20);
  const auto start = Clock::now();
  const auto end = start + seconds_of(std::atof(argv[3]));
  auto now = start;
  while (now < end) {
    epoll_event events[64];
    const int count = epoll_wait(epoll, events, 64, 1000);
    for (int i = 0; i < count; ++i) {
      Connection& c = connections[events[i].data.u64];
      c.received += receive(c.fd, buffer.data(), buffer.size());
      if (c.received < answer.size()) continue;
      now = Clock::now();
      latencies.push_back(std::chrono::duration<float, std::micro>(now - c.sent).count());
      c.received = 0;
      c.sent = now;
      send_all(c.fd, request);
    }
    if (count == 0) now = Clock::now();
  }
  const double seconds = std::chrono::duration<double>(now - start).count();
  std::sort(latencies.begin(), latencies.end());
  std::printf(
      "{\"requests_per_second\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"answer_bytes\": %zu, "
      "\"body_bytes\": %zu}\n",
      static_cast<double>(latencies.size()) / seconds, quantile(latencies, 0.5), quantile(latencies, 0.99),
      quantile(latencies, 0.999), answer.size(), answer.size() - answer.find("\r\n\r\n") - 4);
  return 0;
}
