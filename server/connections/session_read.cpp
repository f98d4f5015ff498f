// The bytes that come to a session: one read at a time.
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "server/base/failure.h"
#include "server/connections/session.h"

namespace sconce::server {
namespace {

namespace asio = boost::asio;

// After a refusal the client may go on sending this much, this long, so that it sees the answer rather than a reset.
constexpr size_t kLingerBytes = 4 * 1024 * 1024;

}  // namespace

void Session::read(std::span<char> room) {
  begin_operation([&] {
    if (ended_) {
      asio::post(io_thread_.context(), [this] { on_read(ended_, 0); });
    } else if (!transport_.encrypted()) {
      transport_.socket().async_read_some(asio::buffer(room.data(), room.size()),
                                          [this](error_code ec, size_t bytes) { on_read(ec, bytes); });
    } else {
      error_code ec;
      size_t bytes = 0;
      if (!read_encrypted(room, ec, bytes)) return;
      asio::post(io_thread_.context(), [this, ec, bytes] { on_read(ec, bytes); });
    }
  });
  read_ = Read::kNeeded;
}

// False: on_read() is called once there is something.
bool Session::read_encrypted(std::span<char> room, error_code& ec, size_t& bytes) {
  bytes = transport_.read_some(room.data(), room.size(), ec);
  if (ec != asio::error::would_block) return true;
  transport_.socket().async_wait(transport_.wait_type(), [this, room](error_code e) {
    size_t read = 0;
    bool over = true;
    const bool done = e || state_ == State::kClosed || succeeds([&] { over = read_encrypted(room, e, read); });
    if (!done) e = asio::error::no_memory;
    if (over) on_read(e, read);
  });
  return false;
}

void Session::on_read(error_code ec, size_t bytes) noexcept {
  const Read read_was = std::exchange(read_, Read::kNone);
  released();
  ConnectionCounters::add(io_thread_.counters().received, bytes);
  switch (state_) {
    case State::kLingering:
      thrown_away_ += bytes;
      if (ec || thrown_away_ > kLingerBytes || !succeeds([this] { read(reader_.room_for_nothing()); })) close();
      return;
    case State::kClosed:
      return;
    default:
      break;
  }
  if (read_was == Read::kAhead) return on_read_ahead(ec, bytes);
  if (state_ != State::kReading) return;  // answered in the meantime: what came is of no interest
  reader_.received(bytes);
  if (ec) return close();
  proceed();
}

// Reads on while the model has the request: the client's next request, or that it has gone.
void Session::watch_client() noexcept {
  if (read_ != Read::kNone || reader_.room_ahead().empty()) return;
  // Without memory for it the client is seen again when it is answered.
  if (succeeds([this] { read(reader_.room_ahead()); })) read_ = Read::kAhead;
}

void Session::on_read_ahead(error_code ec, size_t bytes) noexcept {
  reader_.received_ahead(bytes);
  ended_ = ec;  // for the next read: the socket may say it but once
  if (waits_for_model()) {
    if (!ec) return watch_client();
    const bool waited = exchange_.cancel_for_client();
    // A run that has begun is answered: the client may only have said that it asks for nothing more.
    if (waited || ec != asio::error::eof) close();
    return;
  }
  if (state_ == State::kReading) proceed();
}

}  // namespace sconce::server
