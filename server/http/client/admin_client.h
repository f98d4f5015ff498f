// A client of the admin port, for plain requests and uploads of weights. Each request has a connection of its own.
//
// Failures of the server or the network are not thrown but returned in Answer. Used by one thread, except the flags and
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
  std::string address;  // to connect to, if not what `host` resolves to
  bool tls = false;
};
// "http://host:8003", "https://host", "host:8003", "host", "http://gateway/prefix". kInvalidArgument.
AdminServer parse_admin_server(std::string_view text);

// The same as a URL that other hosts may use: "http://host:8003/prefix".
std::string url_of(const AdminServer& server);

// One server for each address of the host, for every pod behind a headless service; `text` has the address. kIo.
std::vector<AdminServer> every_address(const AdminServer& server);

struct Answer {
  int status = 0;  // 0: no answer came
  std::string body;
  std::string problem;      // why there is no answer
  std::string retry_after;  // the field
  bool delivered = false;   // the whole request was sent: without an answer, it is unknown what the server did
  bool ok() const noexcept { return status >= 200 && status < 300; }
  // "404: no such model", "cannot connect: Connection refused".
  std::string reason() const;
};

struct UploadFlags {
  std::atomic<uint64_t> sent{0};  // bytes of the body
  std::atomic<bool> stop{false};  // checked between blocks; ends the upload with the problem "stopped"
};

// The head of an answer whose body is taken in pieces.
struct AnswerHead {
  uint64_t length = 0;                                 // of the body
  std::function<std::string(std::string_view)> field;  // by name; "" if it is not there
};
// What takes such a body: `begin` once, then `next` says where to put bytes and `advance` how many have come. If one
// throws, the answer is not read on, and the exception goes to the caller.
struct BodyTaker {
  std::function<void(const AnswerHead&)> begin;
  std::function<std::span<std::byte>()> next;
  std::function<void(size_t)> advance;
};

struct HttpField {
  std::string name, value;
};
// A POST to any server. check: called every 50 ms while the server is waited for; what it throws is passed on.
Answer post_to(const AdminServer& server, const std::string& target, std::span<const HttpField> fields,
               std::string_view body, std::chrono::seconds patience, const TlsContext* tls,
               std::function<void()> check);

// What is said of a body of weights; empty: nothing.
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

  // stop: looked at every 50 ms; kCancelled.
  Answer get(const std::string& target, const std::atomic<bool>* stop = nullptr) const {
    return request("GET", target, {}, stop);
  }
  // body: JSON, or nothing.
  Answer post(const std::string& target, std::string_view body = {}) const { return request("POST", target, body); }
  // Sends the body as safetensors with its length and these fields. The server may refuse it at any time.
  Answer upload(const std::string& target, SafetensorsEncoder& body, const UploadFields& fields,
                UploadFlags& flags) const;
  // Takes the body of a 200, which must have a length. stop: as for get().
  Answer download(const std::string& target, const BodyTaker& taker, const std::atomic<bool>& stop) const;
  // Reads a body that goes on, such as a stream of events, until go_on() is false; that is called at least every 50 ms.
  // Answer::problem says why it ended otherwise.
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

// A body of weights that is sent piece by piece, as the caller gets it.
class AdminUpload {
 public:
  // check: called every 50 ms while the server is waited for; what it
  // throws is passed on.
  AdminUpload(const AdminServer& server, const std::string& token, std::shared_ptr<const TlsContext> tls,
              std::chrono::seconds patience, std::function<void()> check = {});
  ~AdminUpload();
  AdminUpload(const AdminUpload&) = delete;
  AdminUpload& operator=(const AdminUpload&) = delete;

  // False: the server refused it, or cannot be reached; answer() says why.
  bool begin(const std::string& target, uint64_t bytes, const UploadFields& fields);
  // False: no more is wanted; answer() says why.
  bool send(std::span<const std::byte> piece);
  // The server's answer, for which it waits so long.
  const Answer& answer(std::chrono::seconds patience);

 private:
  const AdminServer server_;
  const std::string token_;
  const std::shared_ptr<const TlsContext> tls_;
  std::unique_ptr<AdminConnection> connection_;
  Answer answer_;
  std::string problem_;  // of sending
  uint64_t left_ = 0;
  bool answered_ = false;
};

// The Content-Digest field of a digest.
std::string digest_field(const Sha256Digest& digest);

// Encodes text as one segment of a path or one value of a query.
std::string percent_encoded(std::string_view text);
// "/v2/admin/models/M", with "/versions/V" if there is a version.
std::string admin_path(std::string_view model, std::string_view version);
std::string percent_decoded(std::string_view text);

// The first line of a file; "" without a path. kIo, kInvalidArgument.
std::string read_token(const std::string& path);

}  // namespace sconce::server
