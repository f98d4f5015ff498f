// Upload: the body of a request, read from its connection by a thread that may wait. The connection does nothing else
// meanwhile. Confined to that thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace sconce {

class Upload {
 public:
  // socket: not blocking. first: what was read of the body already. timeout: between two arrivals of bytes.
  Upload(int socket, std::string first, uint64_t length, std::chrono::microseconds timeout)
      : socket_(socket), first_(std::move(first)), length_(length), timeout_(timeout) {}

  uint64_t length() const noexcept { return length_; }
  uint64_t left() const noexcept { return length_ - taken_; }
  // Bytes that came from the socket.
  uint64_t received() const noexcept { return received_; }

  // The client waits for "100 Continue" before it sends; invite() says it.
  void expect_invitation() noexcept { waited_for_ = true; }
  void invite() noexcept;
  // Some bytes of the body, at least one; `to` and what is left are not empty. kCancelled if the client is gone,
  // kDeadlineExceeded; what `check` throws, which is called now and every 50 ms that nothing arrives.
  size_t read(std::span<std::byte> to, const std::function<void()>& check);
  // Reads on and throws away, for a client that writes all before it reads the answer; gives up after a while.
  void discard() noexcept;

  bool closed() const noexcept { return closed_; }
  bool timed_out() const noexcept { return timed_out_; }

 private:
  const int socket_;
  const std::string first_;
  const uint64_t length_;
  const std::chrono::microseconds timeout_;
  uint64_t taken_ = 0, received_ = 0;
  bool waited_for_ = false;  // the client does not send before it is invited
  bool closed_ = false, timed_out_ = false;
};

}  // namespace sconce
