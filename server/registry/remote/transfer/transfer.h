// Transfer: requests for remote files, by libcurl, which is opened for the first one. One at a time; connections are
// kept for the next ones. Used by one thread, except `stop`.
//
// Redirects are followed here, not by libcurl: only to https (between this host's loopback addresses also to http), and
// what is secret in a request goes to no other host.
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
  std::string ca;                           // certificates to trust; empty: the system's, or CURL_CA_BUNDLE's
  std::chrono::milliseconds stall{30'000};  // without kSlowest bytes a second for so long, it is given up
  std::chrono::milliseconds connect{10'000};
  int tries = 5;                            // of a document
  const std::atomic<bool>* stop = nullptr;  // when it becomes true, the transfer ends with kCancelled
};

struct RemoteAnswer : RemoteHead {
  std::string problem;    // why none came, or why it ended early; empty: it is whole
  bool again = false;     // it may be asked for again
  RemoteRequest request;  // the one that was answered: redirects lead elsewhere
  SignedAs signed_as;     // with what its signer signed it
  StoreError error;       // what the server says of an error
  std::string redirect;   // where a redirect leads; empty: nowhere
  std::string linked;     // a hub's X-Linked-Etag on the way, without quotes
  bool ok() const noexcept { return problem.empty() && (status == 200 || status == 206); }
};

class Transfer {
 public:
  static constexpr uint64_t kSlowest = 1024;

  explicit Transfer(TransferSettings settings);  // kUnavailable without libcurl
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Takes bytes of an answer with 200 or 206; false: no more is wanted, and the answer's problem is "refused".
  using Take = std::function<bool(const RemoteAnswer&, std::span<const std::byte>)>;
  // Sees each redirect before it is followed; false: it is not, and is the answer. May be empty.
  using Follow = std::function<bool(const RemoteAnswer&)>;
  // fields: besides those of the request. Throws what `take` throws, and kCancelled.
  RemoteAnswer get(const RemoteRequest& request, std::span<const std::string> fields, const Take& take,
                   const Follow& follow = {});
  // A small document; kUnavailable and others say why there is none. what: the thing that it tells of, for errors;
  // empty: the server.
  std::string document(const RemoteRequest& request, std::string_view what, std::string* next_page = nullptr);

 private:
  struct Handle;
  RemoteAnswer once(const RemoteRequest& request, std::span<const std::string> fields, const Take& take,
                    const std::string& linked);

  const TransferSettings settings_;
  std::unique_ptr<Handle> handle_;
};

// Throws what an answer other than 200 and 206 means, with the server's own words: kNotFound, kForbidden, kUnavailable.
// what: the file.
[[noreturn]] void fail_for(const RemoteAnswer& answer, std::string_view what);
// Waits before try number `tries`, unless `stop` becomes true.
void back_off(int tries, const std::atomic<bool>* stop);

}  // namespace sconce::server
