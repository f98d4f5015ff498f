// What is below a remote prefix, and which of it belongs to models.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/registry/remote/remote_access.h"
#include "server/registry/remote/transfer/transfer.h"

namespace sconce::server {

struct RemoteFile {
  std::string path;  // below the prefix
  uint64_t bytes = 0;
  std::string validator;  // as `Downloaded::validator` has it; empty: unknown
  friend bool operator==(const RemoteFile&, const RemoteFile&) = default;
};

// A list, page by page, which a server may try to make without end. Errors are those of Transfer::document and
// parse_listing; kTooLarge; kInvalidArgument for https, which has no listing. access outlives it.
class RemoteLister {
 public:
  // begin: of the paths that are wanted; a hub may list others, too.
  RemoteLister(RemoteUrl prefix, const RemoteAccess& access, std::string begin = {});
  bool at_end() const noexcept { return at_end_; }
  // Adds the files of the next page.
  void next(Transfer& transfer, std::vector<RemoteFile>& files);

 private:
  void next_of_bucket(Transfer& transfer, std::vector<RemoteFile>& files);
  void next_of_hub(Transfer& transfer, std::vector<RemoteFile>& files);
  void add(RemoteFile file, std::vector<RemoteFile>& files);

  const RemoteUrl prefix_;
  const RemoteAccess& access_;
  const std::string begin_;
  std::string token_;  // of the next page; of a hub, its URL
  size_t pages_ = 0, files_ = 0, text_ = 0;
  bool at_end_ = false;
};

// All files.
std::vector<RemoteFile> list_remote(const RemoteUrl& prefix, const RemoteAccess& access, Transfer& transfer);

// The files of a hub's tree, in its JSON; below: the path that was asked for. kUnavailable.
std::vector<RemoteFile> parse_tree(std::string_view text, const std::string& below);

// Those that a repository of packages has: NAME.pt2 and NAME.pipeline.json, folders NAME with VERSION/model.pt2 or
// config.pbtxt, and in these what may lie beside: labels, requests to warm up. Signatures (.sig) come along. Packages
// are last, so that what belongs to one is there before it. Others, and those with unsafe names, are left out.
std::vector<RemoteFile> files_of_models(std::vector<RemoteFile> files);
// The name that a file's model begins with: NAME of NAME/..., NAME.pt2 and others of files_of_models().
std::string stem_of_file(const std::string& path);
// Of NAME/VERSION/model.pt2 and its signature; 0 for other files.
int64_t version_of_file(const std::string& path);

}  // namespace sconce::server
