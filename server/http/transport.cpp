#include "server/http/transport.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <cstring>

namespace sconce::server::http {
namespace {

namespace asio = boost::asio;

constexpr size_t kRecord = 16384;  // the largest TLS record

constexpr size_t kMaxBuffers = 64;  // maximum per call

// Repeats a call that a signal interrupted.
template <class Call>
size_t bytes_of(boost::system::error_code& ec, const Call& call) noexcept {
  for (;;) {
    const ssize_t bytes = call();
    ec = {};
    if (bytes >= 0) return static_cast<size_t>(bytes);
    if (errno == EINTR) continue;
    ec.assign(errno, boost::system::system_category());
    return 0;
  }
}

}  // namespace

Transport::Transport(Descriptor socket, const TlsContext* tls) : socket_(std::move(socket)) {
  if (tls == nullptr) return;
  tls_ = std::make_unique<TlsStream>(*tls, socket_.get());
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
  const size_t bytes = bytes_of(ec, [&] { return ::recv(socket_.get(), at, room, 0); });
  if (!ec && bytes == 0 && room != 0) ec = asio::error::eof;
  return bytes;
}

size_t Transport::write_some(const Buffers& buffers, error_code& ec) {
  if (!tls_) {
    writable_ = true;
    const auto count = static_cast<size_t>(buffers.last - buffers.first);
    if (count == 1)
      return bytes_of(
          ec, [&] { return ::send(socket_.get(), buffers.first->data(), buffers.first->size(), MSG_NOSIGNAL); });
    std::array<iovec, kMaxBuffers> pieces;
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = std::min(count, kMaxBuffers);
    for (size_t i = 0; i < message.msg_iovlen; ++i)
      pieces[i] = {const_cast<void*>(buffers.first[i].data()), buffers.first[i].size()};
    return bytes_of(ec, [&] { return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL); });
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
  int bytes = 0;
  return ::ioctl(socket_.get(), FIONREAD, &bytes) == 0 && bytes > 0;
}

void Transport::shutdown_send() noexcept {
  if (tls_) tls_->finish();
  ::shutdown(socket_.get(), SHUT_WR);
}

void Transport::close() noexcept {
  if (tls_) tls_->finish();
  socket_ = Descriptor();
}

}  // namespace sconce::server::http
