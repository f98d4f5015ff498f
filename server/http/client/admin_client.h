// A client of the admin port, for plain requests and uploads of weights. Each request has its own connection.
//
// Failures of the server or the network are returned in Answer, not thrown. Used by one thread, except the flags and
// counters of an upload.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/weight_sources.h"
#include "server/http/client/http_client.h"

namespace sconce::server::http {

struct AdminServer {
  std::string text;  // as the user wrote it
  std::string host, port, prefix;
  std::string address;  // address to connect to; empty: resolve `host`
  bool tls = false;
  // The URL of a path on this server, by its host's name.
  std::string url(std::string_view target) const;
};
// The server of a URL. what: begins its errors. kInvalidArgument.
AdminServer parse_server(std::string_view url, const char* default_port, std::string_view what = {});
// Accepts "http://host:8003", "https://host", "host:8003", "host", "http://gateway/prefix". kInvalidArgument.
AdminServer parse_admin_server(std::string_view text);

// The server as a URL that other hosts can use: "http://host:8003/prefix".
std::string url_of(const AdminServer& server);

// One server for each address of the host, so that each pod behind a headless service is reached; `text` has the
// address. kIo.
std::vector<AdminServer> every_address(const AdminServer& server);

struct UploadFlags {
  std::atomic<uint64_t> sent{0};  // bytes of the body
  std::atomic<bool> stop{false};  // checked every 50 ms; ends the upload with the problem "stopped"
};

// Fields about a body of weights; empty: not sent.
struct UploadFields {
  std::string content_digest, signature;  // Content-Digest, Sconce-Signature
};

class AdminClient {
 public:
  // patience: the longest time without a byte in either direction. token: may be empty. tls: for https.
  AdminClient(AdminServer server, std::string token, std::chrono::seconds patience, ClientTls tls)
      : server_(std::move(server)), token_(std::move(token)), patience_(patience), tls_(std::move(tls)) {}

  const AdminServer& server() const noexcept { return server_; }
  AdminClient with_patience(std::chrono::seconds patience) const { return {server_, token_, patience, tls_}; }

  // stop: checked every 50 ms; kCancelled.
  Answer get(const std::string& target, const std::atomic<bool>* stop = nullptr) const;
  // body: JSON, or empty.
  Answer post(const std::string& target, std::string_view body = {}) const;
  // Sends the body as safetensors with its length and `fields`. The server may refuse the upload at any time.
  Answer upload(const std::string& target, SafetensorsEncoder& body, const UploadFields& fields,
                UploadFlags& flags) const;
  // Begins an upload of so many bytes, which the caller sends by HttpClient::send().
  bool begin_upload(HttpClient& upload, const std::string& target, uint64_t bytes, const UploadFields& fields,
                    const HttpClient::Check& check = {}) const;
  // Receives the body of a 200, which must have a length. begin: called with the header and the length. Exceptions of
  // both functions end the download and are passed on. stop: as for get().
  Answer download(const std::string& target, const std::function<void(const AnswerHead&, uint64_t)>& begin,
                  const std::function<void(std::span<const std::byte>)>& take,
                  const std::atomic<bool>* stop = nullptr) const;
  // Reads an endless body, such as a stream of events, until go_on() returns false. go_on() is called at least every 50
  // ms. If the body ends before, Answer::problem has the reason.
  Answer follow(const std::string& target, const std::function<void(std::string_view)>& take,
                const std::function<bool()>& go_on) const;

  // For one upload.
  HttpClient connection() const { return HttpClient(tls_, {.connect = patience_, .silence = patience_}); }

 private:
  HttpRequest request(const std::string& target, const char* accept = "application/json") const;

  AdminServer server_;
  std::string token_;
  std::chrono::seconds patience_;
  ClientTls tls_;
};

// The Content-Digest field for a digest.
std::string digest_field(const Sha256Digest& digest);

// "/v2/admin/models/M", with "/versions/V" if there is a version.
std::string admin_path(std::string_view model, std::string_view version);

// The first line of a file; "" without a path. kIo, kInvalidArgument.
std::string read_token(const std::string& path);

}  // namespace sconce::server::http
