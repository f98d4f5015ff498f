// RemoteRequest: one request to a server, without what a caller adds, such as a range.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sconce::server {

struct RemoteAnswer;
class RequestSigner;

// What a signer believed when it signed a request. Meanwhile another thread may have learned better.
struct SignedAs {
  uint64_t issue = 0;  // of the credentials; 0: there were none
  std::string region;
  std::chrono::seconds clock_offset{};
};

struct RemoteRequest {
  std::string url;
  std::vector<std::string> fields;        // "Name: value"
  std::shared_ptr<RequestSigner> signer;  // null: it is sent as it is, and follows redirects
  bool netrc = false;                     // ~/.netrc may have credentials for the host
  std::string method;                     // empty: GET, or POST with a body
  std::string body;
  bool direct = false;  // through no proxy
  SignedAs signed_as;   // set by sign()
};

// Signs requests to a service, and learns from its refusals. Thread-safe.
class RequestSigner {
 public:
  virtual ~RequestSigner() = default;
  // The request as it is sent now. May block while credentials are fetched: kForbidden, kUnavailable say why there are
  // none.
  virtual RemoteRequest sign(RemoteRequest request) = 0;
  // True: the reason of the refusal is put right (region, clock, credentials), so another try is worth it.
  virtual bool correct(const RemoteAnswer& refusal) = 0;
  // With which credentials it signs, for errors.
  virtual std::string describe() const = 0;
};

}  // namespace sconce::server
