// Upload: the body of a request, read from its connection by a thread that may wait. The connection does nothing else
// meanwhile. Confined to that thread.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sconce::server {

class InputBuffer;
class RequestParser;
class Transport;

// What a connection lends to an upload until its request is answered.
struct UploadSource {
  Transport* transport = nullptr;
  RequestParser* parser = nullptr;  // has read the header
  InputBuffer* input = nullptr;     // what was read already; afterwards it is what comes behind the body
};

class Upload {
 public:
  struct Limits {
    std::chrono::microseconds idle;  // between two arrivals of bytes
    uint64_t rate = 0;               // bytes a second on average, once `idle` has passed; 0: any
  };

  Upload(const UploadSource& source, Limits limits);

  // Of the body; none where it comes in chunks.
  std::optional<uint64_t> length() const noexcept { return length_; }
  uint64_t received() const noexcept { return received_; }  // bytes that came from the socket
  bool complete() const noexcept { return complete_; }      // the whole body was read
  // A body of more bytes ends in kTooLarge, before or, where it comes in chunks, while it is read.
  void limit(uint64_t bytes);

  // The client waits for "100 Continue" before it sends; invite() says it.
  void expect_invitation() noexcept { waited_for_ = true; }
  void invite() noexcept;
  // Some bytes of the body; 0: it was complete. `to` is not empty. kCancelled if the client is gone, kDeadlineExceeded,
  // kInvalidArgument for malformed chunks; what `check` throws, which is called now and every 50 ms that nothing
  // arrives.
  size_t read(std::span<std::byte> to, const std::function<void()>& check);
  // Reads on and throws away, for a client that writes all before it reads the answer; gives up after a while.
  void discard() noexcept;

  bool closed() const noexcept { return closed_ && !starved(); }  // by the client
  bool timed_out() const noexcept { return timed_out_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool starved() const noexcept { return problem_ == ENOMEM || problem_ == ENOBUFS; }
  // What can be had without waiting: bytes of the body, or 0, and then complete_, closed_ or malformed_ may say why.
  size_t take(std::span<std::byte> to) noexcept;
  size_t take_chunks(std::span<std::byte> to) noexcept;
  bool receive(char* at, size_t room, size_t& bytes) noexcept;
  void wait(std::chrono::milliseconds time) const noexcept;
  void check_time(Clock::time_point idle_end);
  std::string progress() const;

  const UploadSource source_;
  const Limits limits_;
  const Clock::time_point start_ = Clock::now();
  const std::optional<uint64_t> length_;
  uint64_t limit_;
  uint64_t taken_ = 0, received_ = 0;
  bool complete_ = false;
  std::string_view malformed_;  // why
  bool waited_for_ = false;     // the client does not send before it is invited
  bool closed_ = false, timed_out_ = false;
  int problem_ = 0;  // why it is closed, of the errors of sockets
};

}  // namespace sconce::server
