// Transport: the bytes of one connection, plain or through TLS. Nothing here blocks: an operation that cannot go on
// reports would_block, and wait_type() says what to wait for. Used by one thread at a time.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>

#include "server/http/tls.h"

namespace sconce::server {

class Transport {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using error_code = boost::system::error_code;
  // The buffers left to send.
  struct Buffers {
    using value_type = boost::asio::const_buffer;
    using const_iterator = const boost::asio::const_buffer*;
    const_iterator first, last;
    const_iterator begin() const noexcept { return first; }
    const_iterator end() const noexcept { return last; }
  };

  // tls: null for none. host: as in TlsStream.
  Transport(Socket socket, const TlsContext* tls, const std::string& host = {});

  Socket& socket() noexcept { return socket_; }  // for waiting and, if not encrypted, for reading and writing
  bool encrypted() const noexcept { return tls_ != nullptr; }
  // Returns true when it is done. Encrypted connections begin with it.
  bool handshake(error_code& ec) noexcept;
  std::string handshake_problem() const { return tls_->problem(); }

  // Bytes read or written; at least one unless there is an error.
  size_t read_some(char* at, size_t room, error_code& ec) noexcept;
  size_t write_some(const Buffers& buffers, error_code& ec);
  Socket::wait_type wait_type() const noexcept { return writable_ ? Socket::wait_write : Socket::wait_read; }
  short poll_events() const noexcept;
  bool has_unread() noexcept;

  void shutdown_send() noexcept;
  void close() noexcept;

 private:
  size_t outcome(const TlsStream::Step& step, error_code& ec) noexcept;

  Socket socket_;
  std::unique_ptr<TlsStream> tls_;
  std::unique_ptr<char[]> record_;  // joins small buffers
  bool writable_ = false;           // what is waited for
};

}  // namespace sconce::server
