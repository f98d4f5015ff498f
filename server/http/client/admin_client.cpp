#include "server/http/client/admin_client.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http.hpp>
#include <boost/url/encode.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <boost/url/url_view.hpp>
#include <fstream>
#include <optional>
#include <vector>

#include "sconce/check.h"
#include "sconce/version.h"
#include "server/http/chunk_decoder.h"
#include "server/http/client/admin_connection.h"
#include "server/support/json/base64.h"
#include "server/support/json_document.h"
#include "src/support/hex.h"

namespace sconce::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Code = beast::error_code;

constexpr char kDefaultPort[] = "8003";
constexpr size_t kBlock = size_t{1} << 20, kRead = size_t{64} << 10;
// How long to wait for the server's "100 Continue" before sending the body without it.
constexpr int kContinueMs = 1000;
// Interval at which follow() calls go_on().
constexpr int kSliceMs = 50;

AdminConnection::Request make_request(const AdminServer& server, const std::string& token, std::string_view method,
                                      const std::string& target) {
  AdminConnection::Request request;
  request.method_string({method.data(), method.size()});
  request.target(server.prefix + target);
  const bool six = server.host.find(':') != std::string::npos;
  request.set(http::field::host, (six ? "[" + server.host + "]" : server.host) + ":" + server.port);
  request.set(http::field::user_agent, "sconce/" + version());
  request.set(http::field::accept, "application/json");
  request.set(http::field::connection, "close");
  if (!token.empty()) request.set(http::field::authorization, "Bearer " + token);
  return request;
}

std::string network_problem(const char* what, const Code& code) {
  if (code == beast::error::timeout) return std::string(what) + ": nothing happened for too long";
  if (code == http::error::end_of_stream) return std::string(what) + ": the server closed the connection";
  return std::string(what) + ": " + code.message();
}

}  // namespace

std::string digest_field(const Sha256Digest& digest) {
  TextBuffer text;
  text.append("sha-256=:");
  append_base64(text, digest.data(), digest.size());
  text.append(":");
  return std::string(text.view());
}

AdminServer parse_admin_server(std::string_view text) {
  const bool has_scheme = text.find("://") != std::string_view::npos;
  const std::string whole = has_scheme ? std::string(text) : "http://" + std::string(text);
  const auto parsed = boost::urls::parse_uri(whole);
  SCONCE_CHECK(parsed && !parsed->host().empty(), kInvalidArgument,
               "not the address of an admin port, such as http://host:8003: ", text);
  SCONCE_CHECK(parsed->scheme() == "http" || parsed->scheme() == "https", kInvalidArgument,
               "an admin port speaks http or https: ", text);
  SCONCE_CHECK(!parsed->has_query() && !parsed->has_fragment() && !parsed->has_userinfo(), kInvalidArgument,
               "an admin port's address has no user, query or fragment: ", text);
  // Boost parses 127.0.0.1.example as the address 127.0.0.1 and the path ".example".
  const std::string_view path(parsed->encoded_path().data(), parsed->encoded_path().size());
  SCONCE_CHECK(path.empty() || path.front() == '/', kInvalidArgument,
               "a host's name does not begin with an address: ", text);
  AdminServer server;
  server.text = text;
  server.tls = parsed->scheme() == "https";
  server.host = parsed->host_address();
  server.port = parsed->has_port() && !parsed->port().empty() ? std::string(parsed->port()) : kDefaultPort;
  server.prefix = std::string(parsed->encoded_path());
  while (server.prefix.ends_with('/')) server.prefix.pop_back();
  return server;
}

std::string url_of(const AdminServer& server) {
  const std::string& host = server.address.empty() ? server.host : server.address;
  const bool six = host.find(':') != std::string::npos;
  return (server.tls ? "https://" : "http://") + (six ? "[" + host + "]" : host) + ":" + server.port + server.prefix;
}

std::vector<AdminServer> every_address(const AdminServer& server) {
  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  Code code;
  std::vector<AdminServer> servers;
  for (const auto& place : resolver.resolve(server.host, server.port, code)) {
    AdminServer one = server;
    one.address = place.endpoint().address().to_string();
    one.text = one.address + ":" + server.port;
    const auto same = [&](const AdminServer& other) { return other.address == one.address; };
    if (std::none_of(servers.begin(), servers.end(), same)) servers.push_back(std::move(one));
  }
  SCONCE_CHECK(!code && !servers.empty(), kIo, "cannot find ", server.host, ": ", code.message());
  std::sort(servers.begin(), servers.end(),
            [](const AdminServer& a, const AdminServer& b) { return a.address < b.address; });
  return servers;
}

std::string admin_path(std::string_view model, std::string_view version) {
  std::string path = "/v2/admin/models/" + percent_encoded(model);
  if (!version.empty()) path += "/versions/" + percent_encoded(version);
  return path;
}

std::string percent_encoded(std::string_view text) {
  const boost::core::string_view view(text.data(), text.size());
  // The overload of encode() that returns a string would terminate the process if memory for it is short.
  std::string out(boost::urls::encoded_size(view, boost::urls::unreserved_chars), '\0');
  boost::urls::encode(out.data(), out.size(), view, boost::urls::unreserved_chars);
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string read_token(const std::string& path) {
  if (path.empty()) return "";
  std::ifstream file(path);
  std::string token;
  SCONCE_CHECK(file && std::getline(file, token), kIo, "cannot read the token: ", path);
  while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back()))) token.pop_back();
  SCONCE_CHECK(!token.empty(), kInvalidArgument, "the first line of the token's file is empty: ", path);
  for (const char c : token)
    SCONCE_CHECK(c > 0x20 && c < 0x7f, kInvalidArgument, "a token has only printable characters: ", path);
  return token;
}

std::string Answer::reason() const {
  if (status == 0) return problem;
  std::string text;
  const OrderedJson json = OrderedJson::parse(body, nullptr, false);
  if (json.is_object())
    if (const auto at = json.find("error"); at != json.end() && at->is_string()) text = at->get<std::string>();
  if (text.empty()) text = body.substr(0, 200);
  // Control characters must not reach the terminal.
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return std::to_string(status) + (text.empty() ? "" : ": " + text);
}

namespace {

Answer answer_of(AdminConnection& connection, const AdminConnection::Request& head, std::string_view body) {
  Answer answer;
  answer.problem = connection.connect();
  if (!answer.problem.empty()) return answer;
  Code sent = connection.send_head(head);
  if (!sent) sent = connection.send(std::as_bytes(std::span(body)));
  if (const Code code = sent) {
    answer.problem = network_problem("cannot send the request", code);
    return answer;
  }
  answer.delivered = true;
  if (const Code code = connection.receive(answer)) answer.problem = network_problem("no answer", code);
  connection.close();
  return answer;
}

std::function<void()> check_of(const std::atomic<bool>* stop) {
  if (!stop) return {};
  return [stop] { SCONCE_CHECK(!stop->load(std::memory_order_relaxed), kCancelled, "stopped"); };
}

// The header of an answer whose body the caller receives as it arrives.
struct Begun {
  Answer answer;
  http::fields fields;
  std::optional<uint64_t> length;
  bool chunked = false;
  Code code;  // of sending the request and receiving the header
};
// answer.problem has the reason for a missing connection.
Begun begin(AdminConnection& connection, const AdminConnection::Request& head) {
  Begun begun;
  begun.answer.problem = connection.connect();
  if (!begun.answer.problem.empty()) return begun;
  begun.code = connection.send_head(head);
  if (!begun.code) begun.code = connection.receive_head(begun.answer, begun.fields, begun.length, begun.chunked);
  return begun;
}

}  // namespace

Answer AdminClient::request(std::string_view method, const std::string& target, std::string_view body,
                            const std::atomic<bool>* stop) const {
  AdminConnection connection(server_, tls_.get(), patience_, check_of(stop));
  auto head = make_request(server_, token_, method, target);
  if (method != "GET") head.content_length(body.size());
  if (!body.empty()) head.set(http::field::content_type, "application/json");
  return answer_of(connection, head, body);
}

Answer post_to(const AdminServer& server, const std::string& target, std::span<const HttpField> fields,
               std::string_view body, std::chrono::seconds patience, const TlsContext* tls,
               std::function<void()> check) {
  AdminConnection connection(server, tls, patience, std::move(check));
  auto head = make_request(server, {}, "POST", target);
  head.content_length(body.size());
  head.set(http::field::content_type, "application/json");
  for (const HttpField& field : fields) head.set(field.name, field.value);
  return answer_of(connection, head, body);
}

Answer AdminClient::download(const std::string& target, const BodyTaker& taker, const std::atomic<bool>& stop) const {
  AdminConnection connection(server_, tls_.get(), patience_, check_of(&stop));
  auto request = make_request(server_, token_, "GET", target);
  request.set(http::field::accept, "application/octet-stream");
  auto [answer, fields, length, chunked, code] = begin(connection, request);
  if (!answer.problem.empty()) return answer;
  if (!code && answer.status == 200 && !length) code = http::error::bad_content_length;
  uint64_t left = length.value_or(0);
  if (!code && answer.ok()) {
    const auto field = [&fields = fields](std::string_view name) {
      const auto value = fields[boost::beast::string_view(name.data(), name.size())];
      return std::string(value.data(), value.size());
    };
    taker.begin({left, field});
  }
  while (!code && answer.ok() && left > 0) {
    SCONCE_CHECK(!stop, kCancelled, "stopped");
    const std::span<std::byte> room = taker.next();
    const size_t bytes = connection.take(room.first(std::min<uint64_t>({room.size(), left, kBlock})), code);
    if (bytes > 0) taker.advance(bytes);
    left -= bytes;
  }
  if (code == asio::error::eof) code = http::error::end_of_stream;
  if (code) {
    answer = {};
    answer.problem = network_problem("no answer", code);
  }
  connection.close();
  return answer;
}

Answer AdminClient::follow(const std::string& target, const std::function<void(std::string_view)>& take,
                           const std::function<bool()>& go_on) const {
  AdminConnection connection(server_, tls_.get(), patience_);
  auto request = make_request(server_, token_, "GET", target);
  request.set(http::field::accept, "text/event-stream");
  auto [answer, fields, length, chunked, code] = begin(connection, request);
  if (!answer.problem.empty()) return answer;
  ChunkDecoder chunks;
  std::vector<std::byte> block(kRead);
  std::string left;  // not yet used by the decoder
  auto heard = std::chrono::steady_clock::now();
  while (!code && answer.status == 200 && !chunks.done() && go_on()) {
    if (!connection.readable(kSliceMs)) {
      if (std::chrono::steady_clock::now() - heard > patience_) code = beast::error::timeout;
      continue;
    }
    const size_t bytes = connection.take(block, code);
    heard = std::chrono::steady_clock::now();
    const std::string_view came(reinterpret_cast<const char*>(block.data()), bytes);
    if (!chunked) {
      if (bytes > 0) take(came);
      continue;
    }
    left += came;
    std::string_view here = left;
    while (!code && !here.empty() && !chunks.done()) {
      const ChunkDecoder::Step step = chunks.step(here, SIZE_MAX);
      here.remove_prefix(step.used);
      if (!step.data.empty()) take(step.data);
      if (chunks.problem() != nullptr) code = http::error::bad_chunk;
      if (step.used == 0) break;
    }
    left.erase(0, left.size() - here.size());
  }
  if (code == asio::error::eof || (!code && chunks.done())) code = http::error::end_of_stream;
  if (code) {
    answer = {};
    answer.problem = network_problem("the stream ended", code);
  }
  connection.close();
  return answer;
}

Answer AdminClient::upload(const std::string& target, SafetensorsEncoder& body, const UploadFields& fields,
                           UploadFlags& flags) const {
  AdminUpload upload(server_, token_, tls_, patience_);
  std::vector<std::byte> block(kBlock);
  // Once all bytes are sent, the set may be staged. From then on `stop` is ignored, and the answer is awaited.
  if (upload.begin(target, body.bytes(), fields)) {
    for (uint64_t left = body.bytes(); left > 0;) {
      if (flags.stop) {
        Answer answer;
        answer.problem = "stopped";
        return answer;
      }
      const size_t bytes = body.read(block);
      if (!upload.send({block.data(), bytes})) break;
      flags.sent += bytes;
      left -= bytes;
    }
  }
  return upload.answer(patience_);
}

AdminUpload::AdminUpload(const AdminServer& server, const std::string& token, std::shared_ptr<const TlsContext> tls,
                         std::chrono::seconds patience, std::function<void()> check)
    : server_(server),
      token_(token),
      tls_(std::move(tls)),
      connection_(std::make_unique<AdminConnection>(server_, tls_.get(), patience, std::move(check))) {}

AdminUpload::~AdminUpload() { connection_->close(); }

bool AdminUpload::begin(const std::string& target, uint64_t bytes, const UploadFields& fields) {
  AdminConnection& connection = *connection_;
  answer_.problem = connection.connect();
  answered_ = !answer_.problem.empty();
  if (answered_) return false;
  auto head = make_request(server_, token_, "POST", target);
  head.set(http::field::content_type, "application/octet-stream");
  head.content_length(bytes);
  if (!fields.content_digest.empty()) head.set("Content-Digest", fields.content_digest);
  if (!fields.signature.empty()) head.set("Sconce-Signature", fields.signature);
  head.set(http::field::expect, "100-continue");
  left_ = bytes;
  Code code = connection.send_head(head);
  bool invited = false;
  if (!code && connection.readable(kContinueMs)) {
    code = connection.receive(answer_, &invited);
    answered_ = !code && !invited;  // refused before the first byte
  }
  if (code) problem_ = network_problem("cannot send the weights", code);
  return !code && !answered_;
}

bool AdminUpload::send(std::span<const std::byte> piece) {
  AdminConnection& connection = *connection_;
  if (!problem_.empty() || answered_ || connection.readable(0)) return false;
  if (const Code code = connection.send(piece)) {
    problem_ = network_problem("cannot send the weights", code);
    return false;
  }
  left_ -= piece.size();
  return true;
}

const Answer& AdminUpload::answer(std::chrono::seconds patience) {
  if (std::exchange(answered_, true)) return answer_;
  answer_.delivered = problem_.empty() && left_ == 0;
  connection_->set_patience(patience);
  // If sending failed, an answer may give the server's reason.
  if (const Code code = connection_->receive(answer_))
    answer_.problem = problem_.empty() ? network_problem("no answer", code) : problem_;
  connection_->close();
  return answer_;
}

}  // namespace sconce::server
