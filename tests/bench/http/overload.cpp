// Overloads a server: sends requests at a fixed rate, whatever becomes of them, on as many keep-alive connections as
// that takes. One thread, epoll.
//
// usage: overload PORT RATE SECONDS REQUEST_FILE
// Prints count, p50, p99 and maximum in microseconds, separately for answers 200 and 429, as JSON. A request's time
// begins when it was due. Any other answer ends the program.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/http/connection.h"

using namespace sconce::bench;

namespace {

constexpr size_t kConnections = 256;

struct Connection {
  int fd;
  std::string answer;
  Clock::time_point due;
};

// Length of a whole answer; 0 if more bytes must come.
size_t length_of(const std::string& answer) {
  constexpr std::string_view kField = "\r\nContent-Length: ";
  const size_t head = answer.find("\r\n\r\n"), field = answer.find(kField);
  if (head == std::string::npos || field > head) return 0;
  const size_t length = head + 4 + std::strtoull(answer.c_str() + field + kField.size(), nullptr, 10);
  return answer.size() < length ? 0 : length;
}

void print(const char* name, std::vector<float>& times, const char* end) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double q) { return times.empty() ? 0.0 : quantile(times, q); };
  std::printf("\"%s\": {\"count\": %zu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"most_us\": %.1f}%s", name, times.size(),
              at(0.5), at(0.99), at(1), end);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto port = static_cast<uint16_t>(std::atoi(argv[1]));
  const double rate = std::atof(argv[2]), seconds = std::atof(argv[3]);
  const std::string request = content_of(argv[4]);
  std::vector<Connection> connections;
  std::vector<size_t> idle;
  const int epoll = epoll_create1(0);
  for (size_t i = 0; i < kConnections; ++i) {
    connections.push_back({connect_to(port), {}, {}});
    idle.push_back(i);
    epoll_event event{EPOLLIN, {.u64 = i}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &event);
  }
  std::vector<float> served, refused;
  std::vector<char> buffer(1 << 16);
  const auto start = Clock::now();
  const auto total = static_cast<size_t>(rate * seconds);
  for (size_t sent = 0, answered = 0; answered < total;) {
    const auto now = Clock::now();
    const double elapsed = std::chrono::duration<double>(now - start).count();
    while (sent < total && static_cast<double>(sent) < elapsed * rate && !idle.empty()) {
      Connection& c = connections[idle.back()];
      idle.pop_back();
      c.answer.clear();
      c.due = start + seconds_of(static_cast<double>(sent) / rate);
      if (send(c.fd, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) die("send");
      ++sent;
    }
    epoll_event events[64];
    // Waits until the next request is due, if a connection is free for it.
    timespec wait{1, 0};
    if (sent < total && !idle.empty()) {
      const double ahead =
          static_cast<double>(sent) / rate - std::chrono::duration<double>(Clock::now() - start).count();
      wait = {0, std::max<long>(0, static_cast<long>(ahead * 1e9))};
    }
    const int count = epoll_pwait2(epoll, events, 64, &wait, nullptr);
    for (int i = 0; i < count; ++i) {
      Connection& c = connections[events[i].data.u64];
      c.answer.append(buffer.data(), receive(c.fd, buffer.data(), buffer.size()));
      if (length_of(c.answer) == 0) continue;
      const bool good = c.answer.starts_with("HTTP/1.1 200");
      if (!good && !c.answer.starts_with("HTTP/1.1 429")) {
        std::fprintf(stderr, "unexpected answer:\n%s\n", c.answer.c_str());
        return 1;
      }
      (good ? served : refused).push_back(std::chrono::duration<float, std::micro>(Clock::now() - c.due).count());
      idle.push_back(events[i].data.u64);
      ++answered;
    }
  }
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("{\"seconds\": %.3f, ", took);
  print("served", served, ", ");
  print("refused", refused, "}\n");
  return 0;
}
