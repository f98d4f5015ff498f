// A load generator that checks every answer: N keep-alive connections ask the model fake_update (y = x + [min w, max w,
// min b, max b]), each again as soon as its answer is complete. It counts how often each weight version gave each
// answer, so that whoever published the weights can tell whether an answer was mixed or of no weight version.
//
// usage: update_load PORT MODEL CONNECTIONS SECONDS WINDOW
// Ends after SECONDS, or when standard input is closed. Prints JSON: failures, answers as [weight version, min w, max
// w, min b, max b, count], and for each window of WINDOW seconds of the monotonic clock [its number, requests sent in
// it, their p50, p99 and p99.9 in microseconds].
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/bench/http/connection.h"

using namespace sconce::bench;

namespace {

using Summary = std::array<float, 4>;

constexpr size_t kSummaryBytes = sizeof(Summary);
constexpr uint64_t kInput = ~uint64_t{0};  // epoll's tag for standard input

std::string request_text(const std::string& model, const Summary& x) {
  const std::string json =
      R"({"inputs":[{"name":"INPUT__0","shape":[1,4],"datatype":"FP32","parameters":{"binary_data_size":16}}],)"
      R"("outputs":[{"name":"OUTPUT__0","parameters":{"binary_data":true}}]})";
  std::string text = "POST /v2/models/" + model + "/infer HTTP/1.1\r\nHost: localhost\r\n" +
                     "Inference-Header-Content-Length: " + std::to_string(json.size()) +
                     "\r\nContent-Length: " + std::to_string(json.size() + kSummaryBytes) + "\r\n\r\n" + json;
  text.append(reinterpret_cast<const char*>(x.data()), kSummaryBytes);
  return text;
}

struct Connection {
  int fd = -1;
  Summary x{};
  std::string request, answer;
  Clock::time_point sent;
};

// The number in the header field `name`, or `absent`.
int64_t field(std::string_view head, std::string_view name, int64_t absent) {
  const size_t at = head.find(name);
  if (at == std::string_view::npos) return absent;
  int64_t value = absent;
  std::from_chars(head.data() + at + name.size(), head.data() + head.size(), value);
  return value;
}

class Load {
 public:
  Load(uint16_t port, const std::string& model, int connections) : epoll_(epoll_create1(0)) {
    for (int i = 0; i < connections; ++i) {
      Connection c;
      c.fd = connect_to(port);
      // Integers, so that what the model adds can be subtracted exactly.
      for (size_t k = 0; k < c.x.size(); ++k) c.x[k] = static_cast<float>((i * 7 + static_cast<int>(k) * 3) % 64);
      c.request = request_text(model, c.x);
      connections_.push_back(std::move(c));
    }
    open_ = connections_.size();
    for (size_t i = 0; i < connections_.size(); ++i) watch(connections_[i].fd, i);
    watch(STDIN_FILENO, kInput);
  }

  void run(double seconds, double window) {
    const auto start = Clock::now();
    const auto end = start + seconds_of(seconds);
    window_ = seconds_of(window);
    for (Connection& c : connections_) send_request(c);
    for (bool going = true; going && Clock::now() < end && open_ > 0;) {
      epoll_event events[64];
      const int count = epoll_wait(epoll_, events, 64, 100);
      for (int i = 0; i < count; ++i) {
        if (events[i].data.u64 == kInput) {
          going = false;
        } else {
          take(connections_[events[i].data.u64]);
        }
      }
    }
    seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
  }

  void print() {
    size_t requests = 0;
    for (const auto& [window, latencies] : latencies_) requests += latencies.size();
    std::printf("{\"requests\": %zu, \"seconds\": %.3f, \"failures\": %zu, \"failure\": \"%s\", \"windows\": [",
                requests, seconds_, failures_, failure_.c_str());
    const char* comma = "";
    for (auto& [window, latencies] : latencies_) {
      std::sort(latencies.begin(), latencies.end());
      std::printf("%s[%lld, %zu, %.1f, %.1f, %.1f]", std::exchange(comma, ", "), static_cast<long long>(window),
                  latencies.size(), quantile(latencies, 0.5), quantile(latencies, 0.99), quantile(latencies, 0.999));
    }
    std::printf("], \"answers\": [");
    comma = "";
    for (const auto& [key, count] : answers_) {
      const Summary& y = key.second;
      std::printf("%s[%lld, %.9g, %.9g, %.9g, %.9g, %zu]", std::exchange(comma, ", "),
                  static_cast<long long>(key.first), static_cast<double>(y[0]), static_cast<double>(y[1]),
                  static_cast<double>(y[2]), static_cast<double>(y[3]), count);
    }
    std::printf("]}\n");
  }

 private:
  void watch(int fd, uint64_t mark) {
    epoll_event event{EPOLLIN, {.u64 = mark}};
    // epoll refuses a regular file or /dev/null as standard input; then only time ends the run.
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0 && mark != kInput) die("epoll_ctl");
  }

  void send_request(Connection& c) {
    c.answer.clear();
    c.sent = Clock::now();
    if (send(c.fd, c.request.data(), c.request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(c.request.size()))
      lost(c, "send");
  }

  void take(Connection& c) {
    char buffer[16384];
    const ssize_t n = recv(c.fd, buffer, sizeof buffer, 0);
    if (n <= 0) return lost(c, "connection closed");
    c.answer.append(buffer, static_cast<size_t>(n));
    const size_t head_end = c.answer.find("\r\n\r\n");
    if (head_end == std::string::npos) return;
    const std::string_view head(c.answer.data(), head_end);
    const size_t body = static_cast<size_t>(field(head, "\r\nContent-Length: ", 0));
    if (c.answer.size() < head_end + 4 + body) return;
    latencies_[c.sent.time_since_epoch() / window_].push_back(
        std::chrono::duration<float, std::micro>(Clock::now() - c.sent).count());
    if (head.starts_with("HTTP/1.1 200") && body > kSummaryBytes) {
      Summary y;
      std::memcpy(y.data(), c.answer.data() + c.answer.size() - kSummaryBytes, kSummaryBytes);
      for (size_t k = 0; k < y.size(); ++k) y[k] -= c.x[k];
      ++answers_[{field(head, "\r\nSconce-Weight-Version: ", -1), y}];
    } else {
      fail(std::string(head.substr(0, head.find('\r'))));
    }
    send_request(c);
  }

  void lost(Connection& c, const char* why) {
    fail(why);
    close(c.fd);
    --open_;
  }

  void fail(std::string why) {
    if (failures_++ == 0) failure_ = std::move(why);
  }

  const int epoll_;
  std::vector<Connection> connections_;
  size_t open_ = 0;
  Clock::duration window_{1};
  std::map<Clock::rep, std::vector<float>> latencies_;  // per window
  std::map<std::pair<int64_t, Summary>, size_t> answers_;
  size_t failures_ = 0;
  std::string failure_;
  double seconds_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  Load load(static_cast<uint16_t>(std::atoi(argv[1])), argv[2], std::atoi(argv[3]));
  load.run(std::atof(argv[4]), std::atof(argv[5]));
  load.print();
  return 0;
}
