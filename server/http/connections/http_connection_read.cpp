// HttpConnection: incoming bytes. The loop reports once that the socket has become readable; readable_ stores that
// until nothing is left, so that an empty socket is not read.
#include <boost/asio/error.hpp>
#include <utility>

#include "server/http/connections/http_connection.h"

namespace sconce::server::http {
namespace {

namespace asio = boost::asio;

// After a refusal, the connection discards up to this many bytes for up to this long, so that the client receives the
// answer and not a reset.
constexpr size_t kLingerBytes = 4 * 1024 * 1024;
// How often a connection is read before other connections are served.
constexpr int kReadsInARow = 1;

}  // namespace

void HttpConnection::ready(uint32_t events) noexcept {
  constexpr uint32_t kEnd = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  // With TLS, reading may have to wait until the socket is writable.
  told_ |= (events & EPOLLIN) != 0;
  readable_ |= (events & (EPOLLIN | kEnd)) != 0 || transport_.encrypted();
  hung_up_ |= (events & kEnd) != 0;
  switch (state_) {
    case State::kReading:
      if (readable_) proceed();
      return;
    case State::kHandshake:
      return proceed();
    case State::kWriting:
      // With TLS, writing may have to wait for bytes.
      if (!deferred_ && (transport_.encrypted() || (events & ~EPOLLIN) != 0)) proceed();
      return;
    case State::kWaiting:
      if (looks_ahead()) read_ahead();
      return;
    case State::kLingering:
      return throw_away();
    case State::kReturned:
    case State::kClosed:
      return;
  }
}

void HttpConnection::ask_again() noexcept {
  if (!std::exchange(asked_again_, true)) io_thread_.again(*this);
}

// After other connections were served.
void HttpConnection::go_on() noexcept {
  asked_again_ = false;
  if (state_ == State::kReading) return proceed();
  if (state_ == State::kLingering) throw_away();
}

// At least one byte, unless there is an error.
size_t HttpConnection::read(std::span<char> room, error_code& ec) noexcept {
  if (ended_ || !readable_) {
    ec = ended_ ? ended_ : error_code(asio::error::would_block);
    return 0;
  }
  const size_t bytes = transport_.read_some(room.data(), room.size(), ec);
  const bool told = std::exchange(told_, false);
  if (ec == asio::error::would_block) {
    readable_ = false;
    unsure_ = told;
  } else if (bytes < room.size() && !transport_.encrypted() && !hung_up_) {
    // A socket that returns less than there is room for is empty, unless a signal interrupted the read. TLS may have
    // taken more bytes from the socket than it returns.
    readable_ = false;
    unsure_ = true;
  }
  ConnectionCounters::add(io_thread_.counters().received, bytes);
  return bytes;
}

void HttpConnection::look_again() noexcept { readable_ |= std::exchange(unsure_, false); }

HttpConnection::Next HttpConnection::receive(std::span<char> room) {
  // Before a request the socket counts as empty until check_deadline(); within a request, its rest may have arrived.
  if (!reader_.idle()) look_again();
  if (readable_ && reads_ >= kReadsInARow) {
    ask_again();
    return Next::kWait;
  }
  ++reads_;
  error_code ec;
  const size_t bytes = read(room, ec);
  if (ec == asio::error::would_block) return Next::kWait;
  reader_.received(bytes);
  if (!ec) return Next::kContinue;
  close();
  return Next::kWait;
}

// Reads while the model has the request, to detect the next request or a disconnect.
void HttpConnection::read_ahead() noexcept {
  while (readable_ && !ended_ && !reader_.room_ahead().empty()) {
    error_code ec;
    reader_.received_ahead(read(reader_.room_ahead(), ec));
    if (ec == asio::error::would_block) return;
    ended_ = ec;  // for the next read, because the socket may report it only once
  }
  if (!ended_) return;
  if (feeds()) return close();
  if (!waits_for_model()) return;
  const bool waited = stream_->cancel_for_client();
  // After a run has begun, its answer is sent: the client may have closed only its sending side.
  if (waited || ended_ != asio::error::eof) close();
}

void HttpConnection::throw_away() noexcept {
  error_code ec;
  for (int reads = 0;; ++reads) {
    look_again();
    if (!readable_ && !ended_) return;
    if (reads >= kReadsInARow) return ask_again();
    thrown_away_ += read(reader_.room_for_nothing(), ec);
    if (ec == asio::error::would_block) return;
    if (ec || thrown_away_ > kLingerBytes) return close();
  }
}

}  // namespace sconce::server::http
