// Transfer: requests for remote files through libcurl, which is loaded for the first one. One request at a time;
// connections are reused. Used by one thread, except `stop`.
//
// Redirects are followed by this class, not by libcurl: only to https (between this host's loopback addresses also to
// http), and secrets of a request are not sent to another host.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/registry/remote/transfer/answer_head.h"
#include "server/registry/remote/transfer/request.h"
#include "server/registry/remote/transfer/store_error.h"

namespace sconce::server {

struct TransferSettings {
  std::string ca;  // trusted certificates; empty: the system's, or CURL_CA_BUNDLE's
  std::chrono::milliseconds stall{
      30'000};  // if a transfer stays below kSlowest bytes per second for this long, it is aborted
  std::chrono::milliseconds connect{10'000};
  int tries = 5;                            // maximum number of tries for a document
  const std::atomic<bool>* stop = nullptr;  // when it becomes true, the transfer ends with kCancelled
};

struct RemoteAnswer : RemoteHead {
  std::string problem;    // why there is no answer, or why it ended early; empty: it is complete
  bool again = false;     // a retry may help
  RemoteRequest request;  // the request that was answered, after redirects
  SignedAs signed_as;     // the signer's assumptions for this request
  StoreError error;       // the error that the server reports
  std::string redirect;   // target of a redirect; empty: none
  std::string linked;     // X-Linked-Etag of a hub's redirect, without quotes
  bool ok() const noexcept { return problem.empty() && (status == 200 || status == 206); }
};

class Transfer {
 public:
  static constexpr uint64_t kSlowest = 1024;

  explicit Transfer(TransferSettings settings);  // kUnavailable without libcurl
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Receives the bytes of a 200 or 206; false: stop reading, and the answer's problem is "refused".
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
  struct Handle;
  RemoteAnswer once(const RemoteRequest& request, std::span<const std::string> fields, const Take& take,
                    const std::string& linked);

  const TransferSettings settings_;
  std::unique_ptr<Handle> handle_;
};

// Throws the error for an answer other than 200 and 206, with the server's message: kNotFound, kForbidden,
// kUnavailable. what: the file.
[[noreturn]] void fail_for(const RemoteAnswer& answer, std::string_view what);
// Waits before try number `tries`; returns early if `stop` becomes true.
void back_off(int tries, const std::atomic<bool>* stop);

}  // namespace sconce::server
