// RemoteUrl: the address of a remote package or of a remote repository of packages: s3://bucket/key, gs://bucket/key,
// az://account/container/path (also as https://account.blob.core.windows.net/container/path),
// hf://org/repo[@revision]/file and https://host/file. Pure functions.
//
// Addresses come only from the command line and the settings, never from a request.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sconce::server::registry {

// The forms of an address, for messages and help.
inline constexpr std::array<std::string_view, 5> kRemoteForms{
    "s3://BUCKET/KEY", "gs://BUCKET/KEY", "az://ACCOUNT/CONTAINER/PATH", "hf://ORGANISATION/REPOSITORY[@REVISION]/FILE",
    "https://HOST/FILE"};

enum class RemoteScheme : int8_t { kS3, kGs, kAzure, kHub, kHttps };

struct RemoteUrl {
  RemoteScheme scheme = RemoteScheme::kHttps;
  std::string
      origin;  // bucket; ACCOUNT/CONTAINER; org/repo; for https, scheme and authority, such as https://host:8443
  std::string revision;  // of a hub's repository; may contain slashes
  // Below the origin, without leading or trailing slash. Keys and hub paths are not encoded; https paths are
  // percent-encoded.
  std::string path;
  std::string query;  // for https: may contain a secret, so messages omit it

  bool is_package() const;    // the address is a file, not a repository
  std::string file() const;   // the last part of the path, decoded
  std::string shown() const;  // for messages
  std::string key() const;    // the whole address: its name in a cache
  // The same address with another path.
  RemoteUrl with_path(std::string other) const;
  RemoteUrl beside(std::string_view suffix) const { return with_path(path + std::string(suffix)); }
};

// kInvalidArgument names the address and its defect. Plain http is allowed only for this host's loopback addresses.
RemoteUrl parse_remote_url(std::string_view text);
// Whether a path is safe to create below a local folder: no empty, hidden or dotted parts, no control characters.
bool is_safe_path(std::string_view path) noexcept;

}  // namespace sconce::server::registry
