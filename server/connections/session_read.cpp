// Session: incoming bytes, one read at a time.
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "server/base/failure.h"
#include "server/connections/session.h"

namespace sconce::server {
namespace {

namespace asio = boost::asio;

// After a refusal, the session discards this many bytes for this long, so that the client sees the answer, not a reset.
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

// Returns false if nothing is there yet; on_read() is called later.
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
  if (state_ != State::kReading) return;  // answered in the meantime: these bytes do not matter
  reader_.received(bytes);
  if (ec) return close();
  proceed();
}

// Reads while the model has the request, to see the next request or that the client left.
void Session::watch_client() noexcept {
  if (read_ != Read::kNone || reader_.room_ahead().empty()) return;
  // If there is no memory for this, the client is looked at again after its answer.
  if (succeeds([this] { read(reader_.room_ahead()); })) read_ = Read::kAhead;
}

void Session::on_read_ahead(error_code ec, size_t bytes) noexcept {
  reader_.received_ahead(bytes);
  ended_ = ec;  // for the next read, as the socket may report it only once
  if (waits_for_model()) {
    if (!ec) return watch_client();
    const bool waited = exchange_.cancel_for_client();
    // After a run has begun, send its answer: the client may only have closed its sending side.
    if (waited || ec != asio::error::eof) close();
    return;
  }
  if (feeds()) return ec ? close() : watch_client();
  if (state_ == State::kReading) proceed();
}

}  // namespace sconce::server
