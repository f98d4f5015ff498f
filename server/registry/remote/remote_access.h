// RemoteAccess: with which credentials, and at which endpoints, remote files are asked for. From the environment and
// the files that other programs use too (docs/fleet.md lists them); never from a request.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/registry/remote/credentials/azure_signer.h"
#include "server/registry/remote/credentials/environment.h"
#include "server/registry/remote/credentials/s3_signer.h"
#include "server/registry/remote/remote_url.h"
#include "server/registry/remote/transfer/request.h"
#include "server/registry/remote/transfer/transfer.h"

namespace sconce::server {

// What it has learned of stores (regions, credentials until they expire) stays while a copy lives. Thread-safe.
struct RemoteAccess {
  std::shared_ptr<S3Service> s3, gs;
  std::shared_ptr<RequestSigner> gs_tokens;  // null: gs has HMAC keys
  AzureAccess azure;
  std::function<std::string()> hub_token;  // read anew each time
  std::string hub_endpoint;
};

// transfer: for requests to services that issue credentials. kInvalidArgument for a value that no header field may
// have.
RemoteAccess read_remote_access(const Environment& environment, const TransferSettings& transfer = {});

// For the file.
RemoteRequest request_for(const RemoteUrl& url, const RemoteAccess& access);
// For one page of the files below a prefix of a bucket. prefix: of the keys; bucket: its path does not count. token: of
// the last page; empty for the first.
RemoteRequest listing_request(const RemoteUrl& bucket, std::string_view prefix, const RemoteAccess& access,
                              std::string_view token);
// For the files of a hub's repository, all below the path.
RemoteRequest tree_request(const RemoteUrl& prefix, const RemoteAccess& access);

}  // namespace sconce::server
