#include "server/http/transport.h"

#include <poll.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <cstring>

namespace sconce::server {
namespace {

namespace asio = boost::asio;

constexpr size_t kRecord = 16384;  // the largest of TLS

// Repeats an operation that a signal interrupted.
template <class Operation>
size_t unless_interrupted(const boost::system::error_code& ec, const Operation& operation) {
  for (;;) {
    const size_t bytes = operation();
    if (ec != asio::error::interrupted) return bytes;
  }
}

}  // namespace

Transport::Transport(Socket socket, const TlsContext* tls, const std::string& host) : socket_(std::move(socket)) {
  if (tls == nullptr) return;
  tls_ = std::make_unique<TlsStream>(*tls, socket_.native_handle(), host);
  record_ = std::make_unique_for_overwrite<char[]>(kRecord);
}

size_t Transport::outcome(const TlsStream::Step& step, error_code& ec) noexcept {
  ec = {};
  writable_ = step.want == TlsStream::Want::kWritable;
  if (step.bytes > 0) return step.bytes;
  if (step.want != TlsStream::Want::kNothing) {
    ec = asio::error::would_block;
  } else {
    ec = step.closed ? error_code(asio::error::eof) : error_code(asio::error::connection_reset);
  }
  return 0;
}

bool Transport::handshake(error_code& ec) noexcept { return outcome(tls_->handshake(), ec) > 0; }

size_t Transport::read_some(char* at, size_t room, error_code& ec) noexcept {
  if (tls_) return outcome(tls_->read(at, room), ec);
  writable_ = false;
  return unless_interrupted(ec, [&] { return socket_.read_some(asio::buffer(at, room), ec); });
}

size_t Transport::write_some(const Buffers& buffers, error_code& ec) {
  if (!tls_) {
    writable_ = true;
    return unless_interrupted(ec, [&] { return socket_.write_some(buffers, ec); });
  }
  const asio::const_buffer* first = buffers.first;
  while (first != buffers.last && first->size() == 0) ++first;
  if (first == buffers.last) return 0;
  if (first->size() >= kRecord || first + 1 == buffers.last)
    return outcome(tls_->write(first->data(), std::min(first->size(), kRecord)), ec);
  size_t bytes = 0;
  for (; first != buffers.last && bytes < kRecord; ++first) {
    const size_t piece = std::min(first->size(), kRecord - bytes);
    if (piece > 0) std::memcpy(record_.get() + bytes, first->data(), piece);
    bytes += piece;
  }
  return outcome(tls_->write(record_.get(), bytes), ec);
}

short Transport::poll_events() const noexcept { return writable_ ? POLLOUT : POLLIN; }

bool Transport::has_unread() noexcept {
  if (tls_) return tls_->has_data();
  error_code ec;
  return socket_.available(ec) != 0;
}

void Transport::shutdown_send() noexcept {
  if (tls_) tls_->finish();
  error_code ec;
  socket_.shutdown(Socket::shutdown_send, ec);
}

void Transport::close() noexcept {
  if (tls_) tls_->finish();
  error_code ec;
  socket_.close(ec);
}

}  // namespace sconce::server
