// Download: sends an answer to its connection on a thread that may block. The connection does nothing else meanwhile.
// Used only by that thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace sconce::server {

class Transport;

class Download {
 public:
  // idle: the longest time in which the client takes nothing.
  Download(Transport& transport, std::chrono::microseconds idle) : transport_(transport), idle_(idle) {}

  // Sends all bytes. kCancelled if the client left, kDeadlineExceeded. Calls `check` now and every 50 ms while the
  // client takes nothing, and passes on what it throws.
  void send(std::span<const std::byte> bytes, const std::function<void()>& check);
  uint64_t sent() const noexcept { return sent_; }

 private:
  Transport& transport_;
  const std::chrono::microseconds idle_;
  uint64_t sent_ = 0;
};

}  // namespace sconce::server
