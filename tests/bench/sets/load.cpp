// A load generator for many addresses of one request: N keep-alive connections, each a thread that sends the body to
// the next path as soon as its answer is complete. Every answer must be a 200.
//
// usage: sets_load PORT CONNECTIONS SECONDS PATHS_FILE BODY_FILE
// PATHS_FILE has a path in each line; connection i begins with line i and takes every Nth. Prints requests per second
// and p50 and p99 in microseconds, as JSON.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/http/connection.h"

using namespace sconce::bench;

namespace {

// Compares field names case-sensitively, because the server always writes them like this.
size_t answer_bytes(const std::string& text) {
  const size_t head = text.find("\r\n\r\n");
  if (head == std::string::npos) return 0;
  const size_t length = text.find("Content-Length: ");
  if (text.compare(0, 12, "HTTP/1.1 200") != 0 || length > head) {
    std::fprintf(stderr, "unexpected answer:\n%s\n", text.c_str());
    std::exit(1);
  }
  return head + 4 + std::strtoull(text.c_str() + length + 16, nullptr, 10);
}

std::vector<double> ask(uint16_t port, const std::vector<std::string>& requests, size_t first, size_t step,
                        Clock::time_point end) {
  const int fd = connect_to(port);
  std::vector<double> times;
  std::string answer;
  char buffer[65536];
  for (size_t i = first; Clock::now() < end; i += step) {
    const std::string& request = requests[i % requests.size()];
    const Clock::time_point start = Clock::now();
    send_all(fd, request);
    answer.clear();
    for (size_t whole = 0; whole == 0 || answer.size() < whole; whole = answer_bytes(answer))
      answer.append(buffer, receive(fd, buffer, sizeof buffer));
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  close(fd);
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: sets_load PORT CONNECTIONS SECONDS PATHS_FILE BODY_FILE\n");
    return 2;
  }
  const auto port = static_cast<uint16_t>(std::atoi(argv[1]));
  const auto connections = static_cast<size_t>(std::atoi(argv[2]));
  const std::string body = content_of(argv[5]);
  std::vector<std::string> requests;
  std::ifstream paths(argv[4]);
  for (std::string path; std::getline(paths, path);)
    requests.push_back("POST " + path +
                       " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
                       std::to_string(body.size()) + "\r\n\r\n" + body);
  if (requests.empty()) die("no paths");
  const double seconds = std::atof(argv[3]);
  const Clock::time_point end = Clock::now() + seconds_of(seconds);
  std::vector<std::vector<double>> times(connections);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < connections; ++i)
    threads.emplace_back([&, i] { times[i] = ask(port, requests, i, connections, end); });
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (const auto& part : times) all.insert(all.end(), part.begin(), part.end());
  if (all.empty()) die("no answers");
  std::sort(all.begin(), all.end());
  std::printf("{\"rps\": %.1f, \"p50\": %.1f, \"p99\": %.1f}\n", static_cast<double>(all.size()) / seconds,
              quantile(all, 0.5), quantile(all, 0.99));
}
