// One client connection to an admin port.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "server/http/client/admin_client.h"
#include "server/http/tls.h"
#include "server/http/transport.h"

namespace sconce::server {

// Each step waits until it is complete or until nothing has happened for `patience`. Used by one thread at a time.
class AdminConnection {
 public:
  using Code = boost::beast::error_code;
  using Request = boost::beast::http::request<boost::beast::http::empty_body>;

  // server and tls outlive the connection. check: called every 50 ms while waiting for the server; its exceptions are
  // passed on.
  AdminConnection(const AdminServer& server, const TlsContext* tls, std::chrono::seconds patience,
                  std::function<void()> check = {});

  void set_patience(std::chrono::seconds patience) noexcept { patience_ = patience; }

  // Returns "" or the reason of the failure.
  std::string connect();
  void close();

  Code send_head(const Request& request);
  Code send(std::span<const std::byte> bytes);

  // Whether part of an answer has arrived, or the server has closed the connection.
  bool readable(int milliseconds);
  // The next answer other than "100 Continue"; with `invited`, "100 Continue" is returned too.
  Code receive(Answer& answer, bool* invited = nullptr);
  // Reads the header of an answer. Read the body of a 200 with take(). length: nullopt if the header has none.
  Code receive_head(Answer& answer, boost::beast::http::fields& fields, std::optional<uint64_t>& length, bool& chunked);
  // The next bytes of the body, at most the size of `room`; 0 with an error.
  size_t take(std::span<std::byte> room, Code& code);

 private:
  Code more();
  // Waits until the connection is ready.
  Code wait();

  const AdminServer& server_;
  const TlsContext* const tls_;
  std::chrono::seconds patience_;
  const std::function<void()> check_;
  boost::asio::io_context context_;
  std::optional<Transport> transport_;
  boost::beast::flat_buffer buffer_;
};

}  // namespace sconce::server
