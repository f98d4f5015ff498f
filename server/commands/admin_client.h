// A client of the admin port: plain requests, and uploads of weights. One connection per request, closed behind it.
//
// Nothing throws for what a server or the network does: an Answer says it. Confined to one thread, but for the flags
// and counters of an upload.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/weight_sources.h"
#include "server/http/tls.h"

namespace sconce::server::commands {

struct AdminServer {
  std::string text;  // as the user wrote it
  std::string host, port, prefix;
  std::string address;  // where to connect to, if that is not what host means
  bool tls = false;
};
// "http://host:8003", "https://host", "host:8003", "host", "http://gateway/prefix". kInvalidArgument.
AdminServer parse_admin_server(std::string_view text);

// One for each address of the host, which then stands in `text`: every pod behind a headless service. kIo.
std::vector<AdminServer> every_address(const AdminServer& server);

struct Answer {
  int status = 0;  // 0: none came
  std::string body;
  std::string problem;     // why there is none
  bool delivered = false;  // the whole request went out: without an answer it is unknown what the server did
  bool ok() const noexcept { return status >= 200 && status < 300; }
  // "404: no such model", "cannot connect: Connection refused".
  std::string reason() const;
};

struct UploadFlags {
  std::atomic<uint64_t> sent{0};  // bytes of the body
  std::atomic<bool> stop{false};  // looked at between blocks: the upload ends with the problem "stopped"
};

class AdminClient {
 public:
  // patience: the longest time without a byte in either direction. token: empty for none. tls: for https.
  AdminClient(AdminServer server, std::string token, std::chrono::seconds patience,
              std::shared_ptr<const TlsContext> tls)
      : server_(std::move(server)), token_(std::move(token)), patience_(patience), tls_(std::move(tls)) {}

  const AdminServer& server() const noexcept { return server_; }

  Answer get(const std::string& target) const { return request("GET", target); }
  Answer post(const std::string& target) const { return request("POST", target); }
  // Sends the body as safetensors with its length and Content-Digest. The server may refuse before or while it is sent.
  Answer upload(const std::string& target, SafetensorsEncoder& body, const Sha256Digest& digest,
                UploadFlags& flags) const;

 private:
  Answer request(std::string_view method, const std::string& target) const;

  AdminServer server_;
  std::string token_;
  std::chrono::seconds patience_;
  std::shared_ptr<const TlsContext> tls_;
};

// Text as one segment of a path, or as a value of a query.
std::string percent_encoded(std::string_view text);

}  // namespace sconce::server::commands
