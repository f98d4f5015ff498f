// RemoteAccess: with which credentials, and at which endpoints, remote files are asked for. From the environment and
// the files that other programs use too; never from a request.
//
//   s3://   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; else ~/.aws/credentials (AWS_PROFILE,
//           AWS_SHARED_CREDENTIALS_FILE). AWS_REGION; AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL.
//   gs://   GS_ACCESS_KEY_ID, GS_SECRET_ACCESS_KEY (HMAC keys); GS_ENDPOINT_URL.
//   hf://   HF_TOKEN, else the file HF_TOKEN_PATH, HF_HOME/token or ~/.cache/huggingface/token; HF_ENDPOINT.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/remote/remote_url.h"

namespace sconce::server {

struct BucketAccess {
  std::string key, secret, session;  // empty: requests are not signed
  std::string region, endpoint;      // endpoint: empty for the service's own
};

struct RemoteAccess {
  BucketAccess s3, gs;
  std::string hub_token, hub_endpoint;
};

// A value of an INI file's section, as ~/.aws has them; empty if it is not there.
std::string ini_value(std::string_view text, std::string_view section, std::string_view name);

// variable: the environment's; null if it is not set. kInvalidArgument for a value that no header field may have.
RemoteAccess read_remote_access(const std::function<const char*(const char*)>& variable);

// One request to a server, without what a caller adds, such as a range.
struct RemoteRequest {
  std::string url;
  std::vector<std::string> fields;  // "Name: value"
  std::string signature, user;      // for libcurl's AWS_SIGV4 and USERPWD; empty: not signed
  bool netrc = false;               // ~/.netrc may have credentials for the host
};

// For the file.
RemoteRequest request_for(const RemoteUrl& url, const RemoteAccess& access);
// For one page of the files below a prefix of a bucket. token: of the last page; empty for the first.
RemoteRequest listing_request(const RemoteUrl& prefix, const RemoteAccess& access, std::string_view token);
// For the files of a hub's repository, all below the path.
RemoteRequest tree_request(const RemoteUrl& prefix, const RemoteAccess& access);

}  // namespace sconce::server
