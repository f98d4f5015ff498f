// What is below a remote prefix, and which of it belongs to models.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/remote/remote_access.h"
#include "server/remote/transfer.h"

namespace sconce::server {

struct RemoteFile {
  std::string path;  // below the prefix
  uint64_t bytes = 0;
  std::string validator;  // as `Downloaded::validator` has it; empty: unknown
};

// All files. Errors are those of Transfer::document and parse_listing; kInvalidArgument for https, which has no
// listing.
std::vector<RemoteFile> list_remote(const RemoteUrl& prefix, const RemoteAccess& access, Transfer& transfer);

// The files of a hub's tree, in its JSON; below: the path that was asked for. kUnavailable.
std::vector<RemoteFile> parse_tree(std::string_view text, const std::string& below);

// Those that a repository of packages has: NAME.pt2 and NAME.pipeline.json, folders NAME with VERSION/model.pt2 or
// config.pbtxt, and in these what may lie beside: labels, requests to warm up. Signatures (.sig) come along. Packages
// are last, so that what belongs to one is there before it. Others, and those with unsafe names, are left out.
std::vector<RemoteFile> files_of_models(std::vector<RemoteFile> files);

}  // namespace sconce::server
