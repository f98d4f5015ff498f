// RemoteRequest: one request to a server, without additions of the caller such as a range.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "server/http/client/http_client.h"

namespace sconce::server::registry {

struct RemoteAnswer;
class RequestSigner;

// The signer's assumptions for a request. Another thread may learn better values meanwhile.
struct SignedAs {
  uint64_t issue = 0;  // number of the credentials' fetch; 0: no credentials
  std::string region;
  std::chrono::seconds clock_offset{};
};

struct RemoteRequest : http::HttpRequest {
  std::shared_ptr<RequestSigner> signer;  // null: not signed, and redirects are followed
  SignedAs signed_as;                     // set by sign()
};

// Signs requests to a service, and learns from its refusals. Thread-safe.
class RequestSigner {
 public:
  virtual ~RequestSigner() = default;
  // Returns the request as it must be sent now. May block while credentials are fetched: kForbidden, kUnavailable if
  // that fails.
  virtual RemoteRequest sign(RemoteRequest request) = 0;
  // True: the cause of the refusal was corrected (region, clock, credentials), so a retry may succeed.
  virtual bool correct(const RemoteAnswer& refusal) = 0;
  // The credentials that it signs with, for errors.
  virtual std::string describe() const = 0;
};

}  // namespace sconce::server::registry
