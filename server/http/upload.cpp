#include "server/http/upload.h"

#include <poll.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/http/error.hpp>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include "sconce/check.h"
#include "server/http/input_buffer.h"
#include "server/http/request_parser.h"
#include "server/http/transport.h"

namespace sconce::server::http {
namespace {

// Small enough that the bytes are still in the cache when they are used.
constexpr size_t kPiece = 1024 * 1024;
// Delay until a cancellation is noticed while nothing arrives.
constexpr std::chrono::milliseconds kSlice{50};
constexpr uint64_t kDiscardBytes = 64 * 1024 * 1024;
constexpr std::chrono::seconds kDiscardTime{5};
constexpr std::chrono::milliseconds kDiscardIdle{250};

}  // namespace

Upload::Upload(const UploadSource& source, Limits limits)
    : source_(source),
      limits_(limits),
      length_(source.parser->chunked() ? std::nullopt : std::optional(source.parser->content_length().value_or(0))),
      limit_(length_.value_or(UINT64_MAX)),
      complete_(length_ == 0U) {}

void Upload::limit(uint64_t bytes) {
  SCONCE_CHECK(!length_ || *length_ <= bytes, kTooLarge, "weights are larger than weights_limit: ", *length_,
               " bytes, may be ", bytes);
  limit_ = bytes;
}

void Upload::invite() noexcept {
  if (!waited_for_) return;
  waited_for_ = false;
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  // A client that waits for this line has room for it. A client that does not accept the line will not send the body.
  const boost::asio::const_buffer line(kContinue.data(), kContinue.size());
  boost::system::error_code ec;
  source_.transport->write_some({&line, &line + 1}, ec);
}

size_t Upload::read(std::span<std::byte> to, const std::function<void()>& check) {
  check();
  const Clock::time_point idle_end = Clock::now() + limits_.idle;
  for (uint64_t seen = received_;;) {
    const size_t bytes = take(to);
    if (bytes > 0 || complete_) return bytes;
    SCONCE_CHECK(malformed_.empty(), kInvalidArgument, malformed_);
    SCONCE_CHECK(!starved(), kOutOfMemory, "no memory to receive the body after ", progress());
    SCONCE_CHECK(!closed_, kCancelled, "the client closed the connection after ", progress());
    SCONCE_CHECK(taken_ <= limit_, kTooLarge, "weights are larger than weights_limit: may be ", limit_, " bytes");
    check_time(idle_end);
    if (received_ == seen) wait(kSlice);
    seen = received_;
    check();
  }
}

size_t Upload::take(std::span<std::byte> to) noexcept {
  if (complete_ || closed_) return 0;
  if (!length_) return take_chunks(to);
  size_t bytes = static_cast<size_t>(std::min<uint64_t>({to.size(), *length_ - taken_, kPiece}));
  InputBuffer& input = *source_.input;
  if (!input.empty()) {
    bytes = std::min(bytes, input.size());
    std::memcpy(to.data(), input.here().data(), bytes);
    input.use(bytes);
  } else if (!receive(reinterpret_cast<char*>(to.data()), bytes, bytes)) {
    return 0;
  }
  taken_ += bytes;
  complete_ = taken_ == *length_;
  return bytes;
}

size_t Upload::take_chunks(std::span<std::byte> to) noexcept {
  InputBuffer& input = *source_.input;
  for (;;) {
    size_t bytes = 0;
    while (bytes < to.size() && !complete_ && !input.empty()) {
      boost::beast::error_code ec;
      const RequestParser::Decoded step = source_.parser->decode_chunks(input.here(), to.subspan(bytes), ec);
      input.use(step.used);
      bytes += step.bytes;
      if (ec && ec != boost::beast::http::error::need_more) {
        malformed_ = source_.parser->problem(ec);
        return 0;
      }
      complete_ = source_.parser->is_done();
      if (step.used == 0) break;
    }
    taken_ += bytes;
    if (taken_ > limit_) return 0;
    if (bytes > 0 || complete_) return bytes;
    input.compact();
    if (input.full()) {
      malformed_ = "malformed chunk: header or trailer too large";
      return 0;
    }
    const std::span<char> room = input.room();
    if (!receive(room.data(), room.size(), bytes)) return 0;
    input.add(bytes);
  }
}

bool Upload::receive(char* at, size_t room, size_t& bytes) noexcept {
  boost::system::error_code ec;
  bytes = source_.transport->read_some(at, room, ec);
  received_ += bytes;
  closed_ = ec && ec != boost::asio::error::would_block && ec != boost::asio::error::try_again;
  if (closed_) problem_ = ec.value();
  return !ec;
}

void Upload::wait(std::chrono::milliseconds time) const noexcept {
  pollfd one{source_.transport->descriptor(), source_.transport->poll_events(), 0};
  (void)::poll(&one, 1, static_cast<int>(time.count()));
}

void Upload::check_time(Clock::time_point idle_end) {
  const Clock::time_point now = Clock::now();
  timed_out_ = now >= idle_end;
  SCONCE_CHECK(!timed_out_, kDeadlineExceeded, "nothing more of the body arrived after ", progress());
  if (limits_.rate == 0) return;
  timed_out_ = now - start_ >= limits_.idle + std::chrono::seconds(taken_ / limits_.rate);
  SCONCE_CHECK(!timed_out_, kDeadlineExceeded, "the body arrives at less than upload_rate: ", progress());
}

std::string Upload::progress() const {
  return std::to_string(taken_) + (length_ ? " of " + std::to_string(*length_) : "") + " bytes";
}

void Upload::discard() noexcept {
  if (closed_ || timed_out_ || !malformed_.empty() || waited_for_) return;
  if (length_ && *length_ - taken_ > kDiscardBytes) return;
  const std::unique_ptr<std::byte[]> scratch(new (std::nothrow) std::byte[65536]);
  const uint64_t most = taken_ + kDiscardBytes;
  limit_ = UINT64_MAX;
  const Clock::time_point end = Clock::now() + kDiscardTime;
  Clock::time_point arrived = Clock::now();
  while (scratch && !complete_ && !closed_ && malformed_.empty() && taken_ <= most) {
    const uint64_t before = received_;
    const size_t bytes = take({scratch.get(), 65536});
    const Clock::time_point now = Clock::now();
    if (received_ != before) arrived = now;
    if (now >= end || now - arrived >= kDiscardIdle) return;
    if (bytes == 0 && !complete_) wait(kDiscardIdle);
  }
}

}  // namespace sconce::server::http
