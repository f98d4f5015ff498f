#include "server/http/client/admin_connection.h"

#include <poll.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http.hpp>
#include <climits>
#include <cstring>
#include <sstream>
#include <utility>

namespace sconce::server {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {

constexpr size_t kReadBlock = size_t{64} << 10;
constexpr uint64_t kMaxErrorBytes = 4096;
constexpr uint64_t kMaxAnswerBytes = uint64_t{64} << 20;
// Interval of the caller's check while waiting for a server.
constexpr int kCheckMs = 50;

}  // namespace

AdminConnection::AdminConnection(const AdminServer& server, const TlsContext* tls, std::chrono::seconds patience,
                                 std::function<void()> check)
    : server_(server), tls_(server.tls ? tls : nullptr), patience_(patience), check_(std::move(check)) {}

std::string AdminConnection::connect() {
  Code code;
  asio::ip::tcp::resolver resolver(context_);
  const auto places = resolver.resolve(server_.address.empty() ? server_.host : server_.address, server_.port, code);
  if (code) return "cannot find " + server_.host + ": " + code.message();
  asio::ip::tcp::socket socket(context_);
  asio::async_connect(socket, places, [&code](Code result, const auto&) { code = result; });
  for (auto left = std::chrono::milliseconds(patience_); left.count() > 0 && !context_.stopped();) {
    const auto slice = std::min(left, std::chrono::milliseconds(check_ ? kCheckMs : left.count()));
    context_.run_for(slice);
    left -= slice;
    if (check_) check_();
  }
  if (!context_.stopped()) {
    Code ignored;
    socket.close(ignored);
    context_.run();
    code = beast::error::timeout;
  }
  if (code) return "cannot connect: " + code.message();
  socket.set_option(asio::ip::tcp::no_delay(true), code);
  socket.non_blocking(true, code);
  transport_.emplace(Descriptor(socket.release()), tls_, server_.host);
  while (transport_->encrypted() && !transport_->handshake(code)) {
    if (code != asio::error::would_block) return "no TLS: " + transport_->handshake_problem();
    if ((code = wait())) return "no TLS: " + code.message();
  }
  return "";
}

AdminConnection::Code AdminConnection::send_head(const Request& request) {
  std::ostringstream head;
  head << request.base();
  const std::string text = head.str();
  return send(std::as_bytes(std::span(text)));
}

AdminConnection::Code AdminConnection::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    Code code;
    const asio::const_buffer left(bytes.data(), bytes.size());
    bytes = bytes.subspan(transport_->write_some({&left, &left + 1}, code));
    if (code && code != asio::error::would_block) return code;
    if (code && (code = wait())) return code;
  }
  return {};
}

bool AdminConnection::readable(int milliseconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    if (buffer_.size() > 0 || transport_->has_unread()) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd one{transport_->descriptor(), POLLIN, 0};
    if (::poll(&one, 1, static_cast<int>(std::max<int64_t>(left, 0))) != 1) return false;
    // With TLS, the bytes may belong to the protocol instead of an answer.
    if (!transport_->encrypted()) return true;
  }
}

AdminConnection::Code AdminConnection::receive(Answer& answer, bool* invited) {
  for (;;) {
    http::response_parser<http::string_body> parser;
    parser.body_limit(kMaxAnswerBytes);
    parser.eager(true);
    while (!parser.is_done()) {
      Code code;
      buffer_.consume(parser.put(buffer_.data(), code));
      if (code && code != http::error::need_more) return code;
      if (parser.is_done()) break;
      code = more();
      if (code == asio::error::eof && parser.got_some()) {
        parser.put_eof(code);
        if (!code) break;
      }
      if (code) return code == asio::error::eof ? Code(http::error::end_of_stream) : code;
    }
    if (parser.get().result_int() == 100) {
      if (!invited) continue;
      *invited = true;
      return {};
    }
    answer.status = static_cast<int>(parser.get().result_int());
    const auto retry_after = parser.get()[http::field::retry_after];
    answer.retry_after.assign(retry_after.data(), retry_after.size());
    answer.body = std::move(parser.get().body());
    return {};
  }
}

AdminConnection::Code AdminConnection::receive_head(Answer& answer, http::fields& fields,
                                                    std::optional<uint64_t>& length, bool& chunked) {
  http::response_parser<http::empty_body> parser;
  parser.body_limit(boost::none);
  while (!parser.is_header_done()) {
    Code code;
    buffer_.consume(parser.put(buffer_.data(), code));
    if (code && code != http::error::need_more) return code;
    if (parser.is_header_done()) break;
    if ((code = more())) return code == asio::error::eof ? Code(http::error::end_of_stream) : code;
  }
  answer.status = static_cast<int>(parser.get().result_int());
  if (const auto said = parser.content_length()) length = *said;
  chunked = parser.chunked();
  fields = parser.get().base();
  if (answer.status == 200) return {};
  // The text of an error is short, so it is read here and not by take().
  const uint64_t bytes = length.value_or(0);
  while (buffer_.size() < std::min(bytes, kMaxErrorBytes)) {
    if (const Code code = more()) return code;
  }
  answer.body.assign(static_cast<const char*>(buffer_.data().data()), std::min<size_t>(bytes, buffer_.size()));
  return {};
}

size_t AdminConnection::take(std::span<std::byte> room, Code& code) {
  if (buffer_.size() > 0) {
    const size_t bytes = std::min(room.size(), buffer_.size());
    std::memcpy(room.data(), buffer_.data().data(), bytes);
    buffer_.consume(bytes);
    return bytes;
  }
  for (;;) {
    const size_t bytes = transport_->read_some(reinterpret_cast<char*>(room.data()), room.size(), code);
    if (code != asio::error::would_block) return code ? 0 : bytes;
    if ((code = wait())) return 0;
  }
}

void AdminConnection::close() {
  if (transport_) transport_->close();
}

AdminConnection::Code AdminConnection::more() {
  for (;;) {
    Code code;
    const asio::mutable_buffer room = buffer_.prepare(kReadBlock);
    buffer_.commit(transport_->read_some(static_cast<char*>(room.data()), room.size(), code));
    if (code != asio::error::would_block) return code;
    if ((code = wait())) return code;
  }
}

AdminConnection::Code AdminConnection::wait() {
  pollfd one{transport_->descriptor(), transport_->poll_events(), 0};
  for (int64_t left = std::chrono::milliseconds(patience_).count(); left > 0;) {
    const int64_t slice = std::min<int64_t>(left, check_ ? kCheckMs : INT_MAX);
    if (::poll(&one, 1, static_cast<int>(slice)) != 0) return {};
    left -= slice;
    if (check_) check_();
  }
  return beast::error::timeout;
}

}  // namespace sconce::server
