// Download: sends an answer to its connection on a thread that may block. Meanwhile the connection does nothing else.
// Used only by that thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace sconce::server::http {
class Transport;
}  // namespace sconce::server::http

namespace sconce::server::rollout {

class Download {
 public:
  // idle: maximum time in which the client reads nothing.
  Download(http::Transport& transport, std::chrono::microseconds idle) : transport_(transport), idle_(idle) {}

  // Sends all bytes. kCancelled if the client disconnected, kDeadlineExceeded. Calls `check` now and every 50 ms while
  // the client reads nothing, and passes on its exceptions.
  void send(std::span<const std::byte> bytes, const std::function<void()>& check);
  uint64_t sent() const noexcept { return sent_; }

 private:
  http::Transport& transport_;
  const std::chrono::microseconds idle_;
  uint64_t sent_ = 0;
};

}  // namespace sconce::server::rollout
