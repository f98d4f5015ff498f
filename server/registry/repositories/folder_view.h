// FolderView: the folders of a local or remote repository, as PackageFinder reads them. RemoteFolder: a folder whose
// files are remote until they are needed.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "server/support/files/file_stamp.h"

namespace sconce::server::registry {

class FolderView {
 public:
  virtual ~FolderView() = default;
  // Sorted.
  virtual std::vector<std::string> names(const std::filesystem::path& folder, std::error_code& problem) const = 0;
  virtual bool exists(const std::filesystem::path& path) const = 0;
  virtual bool is_folder(const std::filesystem::path& path) const = 0;
  // Whether the folder has the layout of a package.
  virtual bool is_package(const std::filesystem::path& folder) const = 0;
  // Of a file, or of a folder and everything below it.
  virtual void add_stamp(const std::filesystem::path& path, FileStamps& stamps) const = 0;
};

// The local file system.
const FolderView& local_folders() noexcept;

// Thread-safe.
class RemoteFolder {
 public:
  virtual ~RemoteFolder() = default;
  // The known files. Paths are those of the local copies.
  virtual std::shared_ptr<const FolderView> view() const = 0;
  // Queries the current files of this model. Throws the error if the query fails.
  virtual void ask(std::string_view model) = 0;
  // Downloads the model's files other than packages.
  virtual void prepare(const std::string& stem) = 0;
  // Downloads a package, or another file. Throws the error if the download fails. While the result lives, the file
  // stays; the result may be null. It must not outlive this object.
  virtual std::shared_ptr<const void> bring(const std::filesystem::path& file) = 0;
  // Whether the view is complete, rather than limited to models that were asked for.
  virtual bool is_complete() const noexcept = 0;
};

}  // namespace sconce::server::registry
