#include "server/http/client/admin_client.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <fstream>
#include <vector>

#include "sconce/check.h"
#include "server/http/client/url_text.h"
#include "server/support/json/base64.h"
#include "server/support/json_document.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server::http {
namespace {

namespace asio = boost::asio;

constexpr size_t kBlock = size_t{1} << 20;

// The URL of a server by its name or its address.
std::string url_by(const AdminServer& server, const std::string& host) {
  const bool six = host.find(':') != std::string::npos;
  return (server.tls ? "https://" : "http://") + (six ? "[" + host + "]" : host) + ":" + server.port + server.prefix;
}

HttpClient::Check check_of(const std::atomic<bool>* stop) {
  if (!stop) return {};
  return [stop] {
    SCONCE_CHECK(!stop->load(std::memory_order_relaxed), kCancelled, "stopped");
    return true;
  };
}

}  // namespace

std::string digest_field(const Sha256Digest& digest) {
  TextBuffer text;
  text.append("sha-256=:");
  append_base64(text, digest.data(), digest.size());
  text.append(":");
  return std::string(text.view());
}

AdminServer parse_server(std::string_view url, const char* default_port, std::string_view what) {
  const auto parsed = boost::urls::parse_uri({url.data(), url.size()});
  SCONCE_CHECK(parsed && !parsed->host().empty(), kInvalidArgument, what,
               "not the address of a server, such as http://host:8003: ", excerpt(url));
  SCONCE_CHECK(parsed->scheme() == "http" || parsed->scheme() == "https", kInvalidArgument, what,
               "a server speaks http or https: ", excerpt(url));
  SCONCE_CHECK(!parsed->has_query() && !parsed->has_fragment() && !parsed->has_userinfo(), kInvalidArgument, what,
               "a server's address has no user, query or fragment: ", excerpt(url));
  AdminServer server;
  server.text = url;
  server.tls = parsed->scheme() == "https";
  server.host = parsed->host_address();
  server.port = parsed->has_port() && !parsed->port().empty() ? std::string(parsed->port()) : default_port;
  server.prefix = std::string(parsed->encoded_path());
  // Boost parses 127.0.0.1.example as the address 127.0.0.1 and the path ".example".
  SCONCE_CHECK(server.prefix.empty() || server.prefix.front() == '/', kInvalidArgument, what,
               "a host's name does not begin with an address: ", excerpt(url));
  while (server.prefix.ends_with('/')) server.prefix.pop_back();
  return server;
}

AdminServer parse_admin_server(std::string_view text) {
  const bool has_scheme = text.find("://") != std::string_view::npos;
  AdminServer server = parse_server(has_scheme ? std::string(text) : "http://" + std::string(text), "8003");
  server.text = text;
  return server;
}

std::string url_of(const AdminServer& server) {
  return url_by(server, server.address.empty() ? server.host : server.address);
}

std::string AdminServer::url(std::string_view target) const { return url_by(*this, host).append(target); }

std::vector<AdminServer> every_address(const AdminServer& server) {
  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  boost::system::error_code code;
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
  std::string path = "/v2/admin/models/" + encoded_value(model);
  if (!version.empty()) path += "/versions/" + encoded_value(version);
  return path;
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

HttpRequest AdminClient::request(const std::string& target, const char* accept) const {
  HttpRequest request;
  request.url = server_.url(target);
  request.address = server_.address;
  request.direct = true;
  request.fields.push_back(std::string("Accept: ") + accept);
  if (!token_.empty()) request.fields.push_back("Authorization: Bearer " + token_);
  return request;
}

Answer AdminClient::get(const std::string& target, const std::atomic<bool>* stop) const {
  return connection().ask(request(target), check_of(stop));
}

Answer AdminClient::post(const std::string& target, std::string_view body) const {
  HttpRequest post = request(target);
  post.method = "POST";
  post.body = body;
  post.fields.emplace_back(body.empty() ? "Content-Type:" : "Content-Type: application/json");
  return connection().ask(post);
}

Answer AdminClient::download(const std::string& target, const std::function<void(const AnswerHead&, uint64_t)>& begin,
                             const std::function<void(std::span<const std::byte>)>& take,
                             const std::atomic<bool>* stop) const {
  bool has_length = true;
  AnswerSink sink;
  sink.head = [&](const Answer& head) {
    const auto length = parse_number<uint64_t>(head.field("content-length"));
    has_length = length && head.status == 200 && head.field("transfer-encoding").empty();
    if (has_length) begin(head, *length);
    return has_length;
  };
  sink.body = [&](std::span<const std::byte> bytes) {
    take(bytes);
    return true;
  };
  Answer answer = connection().ask(request(target, "application/octet-stream"), check_of(stop), sink);
  if (!has_length) answer.problem = "no answer: its body has no length";
  return answer;
}

Answer AdminClient::follow(const std::string& target, const std::function<void(std::string_view)>& take,
                           const std::function<bool()>& go_on) const {
  bool begun = false;
  AnswerSink sink;
  sink.head = [&](const Answer&) { return begun = true; };
  sink.body = [&](std::span<const std::byte> bytes) {
    take({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return go_on();
  };
  Answer answer = connection().ask(request(target, "text/event-stream"), go_on, sink);
  if (!begun) return answer;
  answer.status = 0;
  answer.problem =
      "the stream ended: " + (answer.problem.empty() ? "the server closed the connection" : answer.problem);
  return answer;
}

Answer AdminClient::upload(const std::string& target, SafetensorsEncoder& body, const UploadFields& fields,
                           UploadFlags& flags) const {
  HttpClient upload = connection();
  std::vector<std::byte> block(kBlock);
  // Once all bytes are sent, the set may be staged. From then on `stop` is ignored, and the answer is awaited.
  const auto goes_on = [&] { return !flags.stop || flags.sent == body.bytes(); };
  if (begin_upload(upload, target, body.bytes(), fields, goes_on)) {
    for (uint64_t left = body.bytes(); left > 0 && !flags.stop;) {
      const size_t bytes = body.read(block);
      if (!upload.send({block.data(), bytes})) break;
      flags.sent += bytes;
      left -= bytes;
    }
  }
  return upload.answer(patience_);
}

bool AdminClient::begin_upload(HttpClient& upload, const std::string& target, uint64_t bytes,
                               const UploadFields& fields, const HttpClient::Check& check) const {
  HttpRequest post = request(target);
  post.fields.emplace_back("Content-Type: application/octet-stream");
  if (!fields.content_digest.empty()) post.fields.push_back("Content-Digest: " + fields.content_digest);
  if (!fields.signature.empty()) post.fields.push_back("Sconce-Signature: " + fields.signature);
  return upload.begin(post, bytes, check);
}

}  // namespace sconce::server::http
