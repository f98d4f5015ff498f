// The kernel's limit: one thread, epoll and no HTTP library. The first request of a connection says how many bytes each
// of its requests has; every request gets the same answer. usage: epoll_server PORT BODY_BYTES
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kMostConnections = 65536, kMostEvents = 256, kMostBytes = 1 << 16 };

static struct {
  size_t request_bytes;  // 0 until the first request is known
  size_t had;            // of the request that is arriving
} connections[kMostConnections];
static char input[kMostBytes + 1];

static void die(const char* what) {
  perror(what);
  exit(1);
}

// 0 while the head is not complete.
static size_t length_of_request(const char* text) {
  const char* const end = strstr(text, "\r\n\r\n");
  if (!end) return 0;
  const char* const field = strcasestr(text, "\r\nContent-Length:");
  const size_t body = field && field < end ? strtoul(field + strlen("\r\nContent-Length:"), NULL, 10) : 0;
  return (size_t)(end + 4 - text) + body;
}

// Returns how many requests are complete now, or -1 if the connection ended.
static int read_requests(int fd) {
  const ssize_t n = recv(fd, input, kMostBytes, 0);
  if (n <= 0) return -1;
  if (connections[fd].request_bytes == 0) {
    input[n] = '\0';
    connections[fd].request_bytes = length_of_request(input);
    if (connections[fd].request_bytes == 0) return -1;  // clients of this benchmark send heads in one piece
  }
  connections[fd].had += (size_t)n;
  const size_t complete = connections[fd].had / connections[fd].request_bytes;
  connections[fd].had %= connections[fd].request_bytes;
  return (int)complete;
}

static void accept_one(int listener, int loop) {
  const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) return;
  if (fd >= kMostConnections) {
    close(fd);
    return;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  memset(&connections[fd], 0, sizeof connections[fd]);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
}

int main(int count, char** arguments) {
  if (count != 3) {
    fprintf(stderr, "usage: epoll_server PORT BODY_BYTES\n");
    return 2;
  }
  const size_t body = strtoul(arguments[2], NULL, 10);
  char* const answer = malloc(body + 256);
  if (!answer) die("malloc");
  const int head = sprintf(answer,
                           "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
                           "Inference-Header-Content-Length: 48\r\nContent-Length: %zu\r\n\r\n",
                           body);
  memset(answer + head, 'x', body);
  const size_t answer_bytes = (size_t)head + body;

  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(arguments[1])),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 1024) != 0) die("bind");
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[kMostEvents];
  if (epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event) != 0) die("epoll_ctl");
  for (;;) {
    const int ready = epoll_wait(loop, events, kMostEvents, -1);
    for (int i = 0; i < ready; ++i) {
      const int fd = events[i].data.fd;
      if (fd == listener) {
        accept_one(listener, loop);
        continue;
      }
      int complete = read_requests(fd);
      for (; complete > 0; --complete)
        if (send(fd, answer, answer_bytes, MSG_NOSIGNAL) != (ssize_t)answer_bytes) complete = -1;
      if (complete < 0) close(fd);
    }
  }
}
