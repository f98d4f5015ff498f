// Lists the files below a remote prefix, and selects those that belong to models.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/registry/remote/remote_access.h"
#include "server/registry/remote/transfer/transfer.h"

namespace sconce::server::registry {

struct RemoteFile {
  std::string path;  // below the prefix
  uint64_t bytes = 0;
  std::string validator;  // in the form of `Downloaded::validator`; empty: unknown
  friend bool operator==(const RemoteFile&, const RemoteFile&) = default;
};

// A listing, page by page; the number of pages is limited, because a server may try to send an endless list. Errors of
// Transfer::document and parse_listing; kTooLarge; kInvalidArgument for https, which has no listing. access outlives
// the object.
class RemoteLister {
 public:
  // begin: prefix of the wanted paths; a hub may list other paths, too.
  RemoteLister(RemoteUrl prefix, const RemoteAccess& access, std::string begin = {});
  bool at_end() const noexcept { return at_end_; }
  // Appends the files of the next page.
  void next(Transfer& transfer, std::vector<RemoteFile>& files);

 private:
  void next_of_bucket(Transfer& transfer, std::vector<RemoteFile>& files);
  void next_of_hub(Transfer& transfer, std::vector<RemoteFile>& files);
  void add(RemoteFile file, std::vector<RemoteFile>& files);

  const RemoteUrl prefix_;
  const RemoteAccess& access_;
  const std::string begin_;
  std::string token_;  // for the next page; for a hub, the page's URL
  size_t pages_ = 0, files_ = 0, text_ = 0;
  bool at_end_ = false;
};

// All files.
std::vector<RemoteFile> list_remote(const RemoteUrl& prefix, const RemoteAccess& access, Transfer& transfer);

// The files in a hub's JSON tree; below: the requested path. kUnavailable.
std::vector<RemoteFile> parse_tree(std::string_view text, const std::string& below);

// The files of a package repository: NAME.pt2 and NAME.pipeline.json, folders NAME with VERSION/model.pt2 or
// config.pbtxt, and their additional files: labels, warm-up requests. Signatures (.sig) are included. Packages come
// last, so that the files of a package are downloaded before it. Other files, and files with unsafe names, are omitted.
std::vector<RemoteFile> files_of_models(std::vector<RemoteFile> files);
// The prefix of the model names in a file: NAME for NAME/..., NAME.pt2 and others of files_of_models().
std::string stem_of_file(const std::string& path);
// For NAME/VERSION/model.pt2 and its signature; 0 for other files.
int64_t version_of_file(const std::string& path);

}  // namespace sconce::server::registry
