// Transport: the bytes of one connection, plain or through TLS. Nothing here blocks: an operation that cannot go on
// reports would_block, and poll_events() says what to wait for. Used by one thread at a time.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <string>

#include "server/http/tls.h"
#include "server/support/files/descriptor.h"

namespace sconce::server {

class Transport {
 public:
  using error_code = boost::system::error_code;
  // The buffers left to send.
  struct Buffers {
    using value_type = boost::asio::const_buffer;
    using const_iterator = const boost::asio::const_buffer*;
    const_iterator first, last;
    const_iterator begin() const noexcept { return first; }
    const_iterator end() const noexcept { return last; }
  };

  // socket: does not block. tls: null for none. host: as in TlsStream.
  Transport(Descriptor socket, const TlsContext* tls, const std::string& host = {});

  int descriptor() const noexcept { return socket_.get(); }  // for waiting
  bool encrypted() const noexcept { return tls_ != nullptr; }
  // Returns true when it is done. Encrypted connections begin with it.
  bool handshake(error_code& ec) noexcept;
  std::string handshake_problem() const { return tls_->problem(); }

  // Bytes read or written; at least one unless there is an error. asio::error::eof: the other side sends no more.
  size_t read_some(char* at, size_t room, error_code& ec) noexcept;
  size_t write_some(const Buffers& buffers, error_code& ec);
  short poll_events() const noexcept;  // what to wait for, after would_block
  bool has_unread() noexcept;

  void shutdown_send() noexcept;
  void close() noexcept;

 private:
  size_t outcome(const TlsStream::Step& step, error_code& ec) noexcept;

  Descriptor socket_;
  std::unique_ptr<TlsStream> tls_;
  std::unique_ptr<char[]> record_;  // joins small buffers
  bool writable_ = false;           // what is waited for
};

}  // namespace sconce::server
