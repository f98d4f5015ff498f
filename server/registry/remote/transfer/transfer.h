// Transfer: requests for remote files: signed, repeated, and with redirects. One request at a time; connections are
// reused. Used by one thread, except `stop`.
//
// Redirects are followed only to https (between this host's loopback addresses also to http), and secrets of a request
// are not sent to another host.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "server/http/client/http_client.h"
#include "server/registry/remote/transfer/request.h"
#include "server/registry/remote/transfer/store_error.h"

namespace sconce::server::registry {

struct TransferSettings {
  std::string ca;  // trusted certificates; empty: the system's, or CURL_CA_BUNDLE's
  // A transfer that stays below HttpClient::kSlowest bytes per second for this long is aborted.
  std::chrono::milliseconds stall{30'000};
  std::chrono::milliseconds connect{10'000};
  int tries = 5;                            // maximum number of tries for a document
  const std::atomic<bool>* stop = nullptr;  // when it becomes true, the transfer ends with kCancelled
};

struct RemoteAnswer : http::Answer {  // temporary: also of a status after which a retry may help
  RemoteRequest request;              // the request that was answered, after redirects
  SignedAs signed_as;                 // the signer's assumptions for this request
  StoreError error;                   // the error that the server reports
  std::string linked;                 // X-Linked-Etag of a hub's redirect, without quotes
  bool has_content() const noexcept { return status == 200 || status == 206; }
};

class Transfer {
 public:
  explicit Transfer(TransferSettings settings);  // kUnavailable without libcurl

  // Receives the bytes of a 200 or 206; false: stop reading, and the answer's problem is "stopped".
  using Take = std::function<bool(const RemoteAnswer&, std::span<const std::byte>)>;
  // Called before each redirect; false: it is not followed, and becomes the answer. May be empty.
  using Follow = std::function<bool(const RemoteAnswer&)>;
  // fields: in addition to those of the request. Throws the exceptions of `take`, and kCancelled.
  RemoteAnswer get(const RemoteRequest& request, std::span<const std::string> fields, const Take& take,
                   const Follow& follow = {});
  // Downloads a small document; kUnavailable and other errors if that fails. what: the subject of the document, for
  // errors; empty: the server.
  std::string document(const RemoteRequest& request, std::string_view what, std::string* next_page = nullptr);

 private:
  RemoteAnswer once(const RemoteRequest& request, std::span<const std::string> fields, const Take& take,
                    const std::string& linked);

  const TransferSettings settings_;
  http::HttpClient client_;
};

// Throws the error for an answer other than 200 and 206, with the server's message: kNotFound, kForbidden,
// kUnavailable. what: the file.
[[noreturn]] void fail_for(const RemoteAnswer& answer, std::string_view what);
// Waits before try number `tries`; returns early if `stop` becomes true.
void back_off(int tries, const std::atomic<bool>* stop);

}  // namespace sconce::server::registry
