// One connection of a client to an admin port.
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

// Each step waits until it is done or nothing has happened for `patience`; one thread at a time.
class AdminConnection {
 public:
  using Code = boost::beast::error_code;
  using Request = boost::beast::http::request<boost::beast::http::empty_body>;

  // server and tls outlive the connection. check: called every 50 ms while the server is waited for; what it throws is
  // passed on.
  AdminConnection(const AdminServer& server, const TlsContext* tls, std::chrono::seconds patience,
                  std::function<void()> check = {});

  void set_patience(std::chrono::seconds patience) noexcept { patience_ = patience; }

  // Returns "" or the reason why it failed.
  std::string connect();
  void close();

  Code send_head(const Request& request);
  Code send(std::span<const std::byte> bytes);

  // Whether part of an answer has come, or the server has closed the connection.
  bool readable(int milliseconds);
  // The next answer except "100 Continue"; with `invited`, that one too.
  Code receive(Answer& answer, bool* invited = nullptr);
  // Reads the head of an answer. If that is a 200, its body follows by take(). length: nullopt if it is not said.
  Code receive_head(Answer& answer, boost::beast::http::fields& fields, std::optional<uint64_t>& length, bool& chunked);
  // The next bytes of the body, at most as many as there is room for; 0 with an error.
  size_t take(std::span<std::byte> room, Code& code);

 private:
  Code more();
  // Waits until the connection can go on.
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
