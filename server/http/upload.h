// Upload: reads the body of a request from its connection on a thread that may block. Meanwhile the connection does
// nothing else. Used only by that thread.
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

namespace sconce::server::http {

class InputBuffer;
class RequestParser;
class Transport;

// The parts of a connection that an upload borrows until its request is answered.
struct UploadSource {
  Transport* transport = nullptr;
  RequestParser* parser = nullptr;  // has parsed the header
  InputBuffer* input = nullptr;     // before: bytes already read; afterwards: bytes after the body
};

class Upload {
 public:
  struct Limits {
    std::chrono::microseconds idle;  // longest time between two arrivals of bytes
    uint64_t rate = 0;               // minimum average bytes per second, enforced once `idle` has passed; 0: no minimum
  };

  Upload(const UploadSource& source, Limits limits);

  // Of the body; nullopt if it is chunked.
  std::optional<uint64_t> length() const noexcept { return length_; }
  uint64_t received() const noexcept { return received_; }  // bytes that came from the socket
  bool complete() const noexcept { return complete_; }      // the whole body was read
  // A larger body fails with kTooLarge: before it is read or, if it is chunked, while it is read.
  void limit(uint64_t bytes);

  // The client sends the body only after "100 Continue", which invite() sends.
  void expect_invitation() noexcept { waited_for_ = true; }
  void invite() noexcept;
  // Reads some bytes of the body into `to`, which must not be empty; 0 means that the body is complete. kCancelled if
  // the client disconnected, kDeadlineExceeded, kInvalidArgument for malformed chunks. Calls `check` now and every 50
  // ms while nothing arrives, and passes on its exceptions.
  size_t read(std::span<std::byte> to, const std::function<void()>& check);
  // Reads and discards the rest, for a client that sends the whole body before it reads the answer. Stops after a time
  // limit.
  void discard() noexcept;

  bool closed() const noexcept { return closed_ && !starved(); }  // by the client
  bool timed_out() const noexcept { return timed_out_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool starved() const noexcept { return problem_ == ENOMEM || problem_ == ENOBUFS; }
  // Returns bytes of the body without waiting. If it returns 0, complete_, closed_ or malformed_ may have the reason.
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
  std::string_view malformed_;  // the defect
  bool waited_for_ = false;     // the client waits for "100 Continue"
  bool closed_ = false, timed_out_ = false;
  int problem_ = 0;  // errno of the closing error
};

}  // namespace sconce::server::http
