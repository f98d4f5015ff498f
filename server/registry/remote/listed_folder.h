// ListedFolder: a list of remote files, as folders that PackageFinder reads. Immutable.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "server/registry/remote/remote_listing.h"
#include "server/registry/repositories/folder_view.h"

namespace sconce::server::registry {

class ListedFolder final : public FolderView {
 public:
  // root: future location of the files. The constructor does not access it.
  ListedFolder(const std::filesystem::path& root, std::vector<RemoteFile> files);

  std::vector<std::string> names(const std::filesystem::path& folder, std::error_code& problem) const override;
  bool exists(const std::filesystem::path& path) const override;
  bool is_folder(const std::filesystem::path& path) const override;
  // Remote packages are always files.
  bool is_package(const std::filesystem::path&) const override { return false; }
  void add_stamp(const std::filesystem::path& path, FileStamps& stamps) const override;

 private:
  using Files = std::vector<RemoteFile>;
  std::string below(const std::filesystem::path& path) const;
  Files::const_iterator first_from(const std::string& path) const;

  const std::string root_;
  Files files_;  // by path
};

}  // namespace sconce::server::registry
