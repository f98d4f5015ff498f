#include "server/registry/repositories/folder_view.h"

#include "package_format/files/directory.h"

namespace sconce::server::registry {
namespace {

class LocalFolders final : public FolderView {
 public:
  std::vector<std::string> names(const std::filesystem::path& folder, std::error_code& problem) const override {
    return names_in(folder, problem);
  }
  bool exists(const std::filesystem::path& path) const override {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  }
  bool is_folder(const std::filesystem::path& path) const override {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
  }
  bool is_package(const std::filesystem::path& folder) const override {
    return exists(folder / "archive_format") || exists(folder / "data" / "aotinductor");
  }
  void add_stamp(const std::filesystem::path& path, FileStamps& stamps) const override {
    stamps.add(path.c_str());
    if (is_folder(path)) add_below(path, stamps);
  }

 private:
  static void add_below(const std::filesystem::path& folder, FileStamps& stamps) {
    std::error_code ignored;
    for (const std::string& name : names_in(folder, ignored)) {
      const std::filesystem::path child = folder / name;
      stamps.add(child.c_str());
      if (std::filesystem::symlink_status(child, ignored).type() == std::filesystem::file_type::directory)
        add_below(child, stamps);
    }
  }
};

}  // namespace

const FolderView& local_folders() noexcept {
  static const LocalFolders folders;
  return folders;
}

}  // namespace sconce::server::registry
