// Shared by the load generators: connections to this host, the end of the program when one fails, times.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace sconce::bench {

using Clock = std::chrono::steady_clock;

[[noreturn]] inline void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

inline int connect_to(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("connect");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

inline void send_all(int fd, const std::string& data) {
  for (size_t sent = 0; sent < data.size();) {
    const ssize_t n = send(fd, data.data() + sent, data.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) die("send");
    sent += static_cast<size_t>(n);
  }
}

// At least one byte.
inline size_t receive(int fd, char* to, size_t room) {
  const ssize_t n = recv(fd, to, room, 0);
  if (n <= 0) die("recv");
  return static_cast<size_t>(n);
}

inline std::string content_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) die(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Clock::duration seconds_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// `sorted` has one element at least.
template <class T>
double quantile(const std::vector<T>& sorted, double q) {
  return static_cast<double>(sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))]);
}

}  // namespace sconce::bench
