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
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/weight_sources.h"
#include "server/http/tls.h"

namespace sconce::server {

class AdminConnection;

struct AdminServer {
  std::string text;  // as the user wrote it
  std::string host, port, prefix;
  std::string address;  // address to connect to; empty: resolve `host`
  bool tls = false;
};
// Accepts "http://host:8003", "https://host", "host:8003", "host", "http://gateway/prefix". kInvalidArgument.
AdminServer parse_admin_server(std::string_view text);

// The server as a URL that other hosts can use: "http://host:8003/prefix".
std::string url_of(const AdminServer& server);

// One server for each address of the host, so that each pod behind a headless service is reached; `text` has the
// address. kIo.
std::vector<AdminServer> every_address(const AdminServer& server);

struct Answer {
  int status = 0;  // 0: no answer came
  std::string body;
  std::string problem;      // reason for a missing answer
  std::string retry_after;  // the Retry-After field
  bool delivered = false;   // the whole request was sent; if no answer came, the server may or may not have executed it
  bool ok() const noexcept { return status >= 200 && status < 300; }
  // "404: no such model", "cannot connect: Connection refused".
  std::string reason() const;
};

struct UploadFlags {
  std::atomic<uint64_t> sent{0};  // bytes of the body
  std::atomic<bool> stop{false};  // checked between blocks; ends the upload with the problem "stopped"
};

// The header of an answer whose body is received in pieces.
struct AnswerHead {
  uint64_t length = 0;                                 // of the body
  std::function<std::string(std::string_view)> field;  // by name; "" if absent
};
// Receives such a body: `begin` is called once; then `next` returns the room for the next bytes, and `advance` reports
// how many arrived. If one of them throws, the rest of the answer is not read, and the exception is passed to the
// caller.
struct BodyTaker {
  std::function<void(const AnswerHead&)> begin;
  std::function<std::span<std::byte>()> next;
  std::function<void(size_t)> advance;
};

struct HttpField {
  std::string name, value;
};
// Sends a POST to any server. check: called every 50 ms while waiting for the server; its exceptions are passed on.
Answer post_to(const AdminServer& server, const std::string& target, std::span<const HttpField> fields,
               std::string_view body, std::chrono::seconds patience, const TlsContext* tls,
               std::function<void()> check);

// Fields about a body of weights; empty: not sent.
struct UploadFields {
  std::string content_digest, signature;  // Content-Digest, Sconce-Signature
};

class AdminClient {
 public:
  // patience: the longest time without a byte in either direction. token: may be empty. tls: for https.
  AdminClient(AdminServer server, std::string token, std::chrono::seconds patience,
              std::shared_ptr<const TlsContext> tls)
      : server_(std::move(server)), token_(std::move(token)), patience_(patience), tls_(std::move(tls)) {}

  const AdminServer& server() const noexcept { return server_; }
  AdminClient with_patience(std::chrono::seconds patience) const { return {server_, token_, patience, tls_}; }

  // stop: checked every 50 ms; kCancelled.
  Answer get(const std::string& target, const std::atomic<bool>* stop = nullptr) const {
    return request("GET", target, {}, stop);
  }
  // body: JSON, or empty.
  Answer post(const std::string& target, std::string_view body = {}) const { return request("POST", target, body); }
  // Sends the body as safetensors with its length and `fields`. The server may refuse the upload at any time.
  Answer upload(const std::string& target, SafetensorsEncoder& body, const UploadFields& fields,
                UploadFlags& flags) const;
  // Receives the body of a 200, which must have a length. stop: as for get().
  Answer download(const std::string& target, const BodyTaker& taker, const std::atomic<bool>& stop) const;
  // Reads an endless body, such as a stream of events, until go_on() returns false. go_on() is called at least every 50
  // ms. If the body ends before, Answer::problem has the reason.
  Answer follow(const std::string& target, const std::function<void(std::string_view)>& take,
                const std::function<bool()>& go_on) const;

 private:
  Answer request(std::string_view method, const std::string& target, std::string_view body = {},
                 const std::atomic<bool>* stop = nullptr) const;

  AdminServer server_;
  std::string token_;
  std::chrono::seconds patience_;
  std::shared_ptr<const TlsContext> tls_;
};

// An upload of weights, sent piece by piece as the caller receives them.
class AdminUpload {
 public:
  // check: called every 50 ms while waiting for the server; its exceptions are passed on.
  AdminUpload(const AdminServer& server, const std::string& token, std::shared_ptr<const TlsContext> tls,
              std::chrono::seconds patience, std::function<void()> check = {});
  ~AdminUpload();
  AdminUpload(const AdminUpload&) = delete;
  AdminUpload& operator=(const AdminUpload&) = delete;

  // False: the server refused the upload or cannot be reached; answer() has the reason.
  bool begin(const std::string& target, uint64_t bytes, const UploadFields& fields);
  // False: the server accepts no more bytes; answer() has the reason.
  bool send(std::span<const std::byte> piece);
  // The server's answer, waited for at most `patience`.
  const Answer& answer(std::chrono::seconds patience);

 private:
  const AdminServer server_;
  const std::string token_;
  const std::shared_ptr<const TlsContext> tls_;
  std::unique_ptr<AdminConnection> connection_;
  Answer answer_;
  std::string problem_;  // a failure to send
  uint64_t left_ = 0;
  bool answered_ = false;
};

// The Content-Digest field for a digest.
std::string digest_field(const Sha256Digest& digest);

// Encodes text as one path segment or one query value.
std::string percent_encoded(std::string_view text);
// "/v2/admin/models/M", with "/versions/V" if there is a version.
std::string admin_path(std::string_view model, std::string_view version);
std::string percent_decoded(std::string_view text);

// The first line of a file; "" without a path. kIo, kInvalidArgument.
std::string read_token(const std::string& path);

}  // namespace sconce::server
