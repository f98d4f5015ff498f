// RemoteUrl: the address of a package, or of a repository of packages, elsewhere: s3://bucket/key, gs://bucket/key,
// az://account/container/path (also as https://account.blob.core.windows.net/container/path),
// hf://org/repo[@revision]/file and https://host/file. Pure functions.
//
// Addresses come from the command line, the settings and nowhere else: no request names one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sconce::server {

// The forms of an address, for messages and help.
inline constexpr std::array<std::string_view, 5> kRemoteForms{
    "s3://BUCKET/KEY", "gs://BUCKET/KEY", "az://ACCOUNT/CONTAINER/PATH", "hf://ORGANISATION/REPOSITORY[@REVISION]/FILE",
    "https://HOST/FILE"};

enum class RemoteScheme : int8_t { kS3, kGs, kAzure, kHub, kHttps };

struct RemoteUrl {
  RemoteScheme scheme = RemoteScheme::kHttps;
  std::string
      origin;  // the bucket; ACCOUNT/CONTAINER; org/repo; of https, scheme and authority, such as https://host:8443
  std::string revision;  // of a hub's repository; may have slashes
  // Below the origin, without a slash at either end. Keys and the hub's paths as they are; of https, percent-encoded.
  std::string path;
  std::string query;  // of https: may hold a secret, so messages leave it out

  bool is_package() const;    // names one file, rather than a repository
  std::string file() const;   // the last part of the path, decoded
  std::string shown() const;  // for messages
  std::string key() const;    // the whole: names it in a cache
  // The same with another path.
  RemoteUrl with_path(std::string other) const;
  RemoteUrl beside(std::string_view suffix) const { return with_path(path + std::string(suffix)); }
};

// Whether the text begins as an address does, with letters and "://".
bool looks_remote(std::string_view text) noexcept;
// kInvalidArgument names the address and what is wrong with it. Plain http is for this host's own loopback addresses.
RemoteUrl parse_remote_url(std::string_view text);
// Whether a path can be taken over below a folder here: no empty, hidden or dotted parts, no control characters.
bool is_safe_path(std::string_view path) noexcept;

}  // namespace sconce::server
