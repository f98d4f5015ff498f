// RemoteAccess: the credentials and endpoints for remote files. They come from the environment and from configuration
// files of other programs (docs/remote.md lists them), never from a request.
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

namespace sconce::server::registry {

// Copies share what was learned about stores (regions, credentials until they expire). Thread-safe.
struct RemoteAccess {
  std::shared_ptr<S3Service> s3, gs;
  std::shared_ptr<RequestSigner> gs_tokens;  // null: gs has HMAC keys
  AzureAccess azure;
  std::function<std::string()> hub_token;  // read again at each call
  std::string hub_endpoint;
};

// transfer: for requests to services that issue credentials. kInvalidArgument for a value that cannot be in a header
// field.
RemoteAccess read_remote_access(const Environment& environment, const TransferSettings& transfer = {});

// A request for the file.
RemoteRequest request_for(const RemoteUrl& url, const RemoteAccess& access);
// A request for one page of the files below a prefix of a bucket. prefix: of the keys; bucket: its path is ignored.
// token: from the previous page; empty for the first page.
RemoteRequest listing_request(const RemoteUrl& bucket, std::string_view prefix, const RemoteAccess& access,
                              std::string_view token);
// A request for all files below the path in a hub's repository.
RemoteRequest tree_request(const RemoteUrl& prefix, const RemoteAccess& access);

}  // namespace sconce::server::registry
