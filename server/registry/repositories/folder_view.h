// FolderView: a repository's folders, here or elsewhere, as PackageFinder reads them. RemoteFolder: one whose files are
// elsewhere until they are needed.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "server/support/files/file_stamp.h"

namespace sconce::server {

class FolderView {
 public:
  virtual ~FolderView() = default;
  // Sorted.
  virtual std::vector<std::string> names(const std::filesystem::path& folder, std::error_code& problem) const = 0;
  virtual bool exists(const std::filesystem::path& path) const = 0;
  virtual bool is_folder(const std::filesystem::path& path) const = 0;
  // Whether a folder is itself a package: it has an archive's layout.
  virtual bool is_package(const std::filesystem::path& folder) const = 0;
  // Of a file, or of a folder and all that is below it.
  virtual void add_stamp(const std::filesystem::path& path, FileStamps& stamps) const = 0;
};

// The folders of this machine.
const FolderView& local_folders() noexcept;

// Thread-safe.
class RemoteFolder {
 public:
  virtual ~RemoteFolder() = default;
  // What is known to be there. Its paths are those where files will be.
  virtual std::shared_ptr<const FolderView> view() const = 0;
  // Asks what there is of this model now. Throws why that cannot be known.
  virtual void ask(std::string_view model) = 0;
  // Afterwards the model's files other than packages are here.
  virtual void prepare(const std::string& stem) = 0;
  // The same for a package, or another file. Throws why it is not. While the result lives, the file stays; it may be
  // null. Must not outlive this.
  virtual std::shared_ptr<const void> bring(const std::filesystem::path& file) = 0;
  // Whether the view has everything, rather than a part that was asked for.
  virtual bool is_complete() const noexcept = 0;
};

}  // namespace sconce::server
