#include "server/registry/repositories/folder_events.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/files.h"

namespace sconce::server::registry {

namespace fs = std::filesystem;

namespace {

struct Told {
  std::atomic<int> count{0};
  FolderEvents events{[this] { ++count; }};

  // Makes the change, and waits until it is told.
  template <class F>
  bool by(const fs::path& folder, F&& change) {
    const std::vector<fs::path> folders{folder};
    const std::string problem = events.follow(folders);
    CHECK(problem == "");
    const int before = count;
    change();
    for (int i = 0; i < 2000 && count == before; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    // Events of one change may be told in two parts; the rest must not count for the next one.
    events.follow(folders);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return count != before;
  }
};

}  // namespace

TEST_CASE("folder events: each kind of change, on every level") {
  const TempFolder folder;
  const fs::path root = folder.path() / "repository";
  folder.write("repository/m.pt2", "old");
  folder.write("repository/model/1/model.pt2", "old");
  Told told;
  CHECK(told.by(root, [&] { folder.write("repository/new.pt2", "new"); }));
  CHECK(told.by(root, [&] { folder.write("repository/m.pt2", "written in place"); }));
  CHECK(told.by(root, [&] { fs::rename(root / "m.pt2", root / "n.pt2"); }));
  CHECK(told.by(root, [&] { fs::remove(root / "n.pt2"); }));
  CHECK(told.by(root, [&] { folder.write("repository/model/1/model.pt2", "new"); }));
  CHECK(told.by(root, [&] { fs::create_directories(root / "model/2"); }));
  CHECK(told.by(root, [&] { folder.write("repository/model/2/model.pt2", "in the folder that was new"); }));
  CHECK(told.by(root, [&] { fs::permissions(root / "new.pt2", fs::perms::owner_read); }));
  CHECK(told.by(root, [&] { fs::remove_all(root / "model"); }));
}

TEST_CASE("folder events: what links name") {
  const TempFolder folder;
  const fs::path root = folder.path() / "repository";
  folder.write("store/a/model.pt2", "a");
  folder.write("store/file.pt2", "file");
  fs::create_directories(root);
  fs::create_directory_symlink(folder.path() / "store/a", root / "1");
  fs::create_symlink(folder.path() / "store/file.pt2", root / "file.pt2");
  Told told;
  CHECK(told.by(root, [&] { folder.write("store/a/model.pt2", "b"); }));
  CHECK(told.by(root, [&] { folder.write("store/file.pt2", "in place"); }));
  CHECK(told.by(root,
                [&] { fs::rename(folder.write("store/next", "renamed over it"), folder.path() / "store/file.pt2"); }));
  // A link that leads back to where it is.
  fs::create_directory_symlink(root, root / "loop");
  CHECK(told.by(root, [&] { folder.write("repository/x.pt2", "x"); }));
}

TEST_CASE("folder events: nothing is told until it is followed again, and nothing is lost meanwhile") {
  const TempFolder folder;
  const std::vector<fs::path> folders{folder.path()};
  std::atomic<int> count{0};
  FolderEvents events([&] { ++count; });
  CHECK(events.follow(folders) == "");
  for (int i = 0; i < 50; ++i) folder.write("f" + std::to_string(i), "x");
  for (int i = 0; i < 2000 && count == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(count == 1);
  // The other one is told of the same change.
  std::atomic<int> others{0};
  FolderEvents other([&] { ++others; });
  CHECK(other.follow(folders) == "");
  folder.write("late", "x");
  for (int i = 0; i < 2000 && others == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(others == 1);
  CHECK(count == 1);
  CHECK(events.follow(folders) == "");
  for (int i = 0; i < 2000 && count == 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(count == 2);
}

TEST_CASE("folder events: a file system that is not local, and a folder that is not there") {
  FolderEvents events([] {});
  const std::vector<fs::path> processes{"/proc/self"}, absent{"/nonexistent/folder"};
  CHECK(events.follow(processes).find("/proc/self: other machines may write") == 0);
  CHECK(events.follow(absent) == "/nonexistent/folder: No such file or directory");
}

TEST_CASE("folder events: a folder that is no model's need not be readable") {
  const TempFolder folder;
  const fs::path root = folder.path() / "repository";
  folder.write("repository/m.pt2", "old");
  fs::create_directories(root / "lost+found");
  fs::create_directory_symlink("/proc/self", root / "not+a+model");  // changes there are not told
  Told told;
  CHECK(told.by(root, [&] { folder.write("repository/m.pt2", "new"); }));
}

}  // namespace sconce::server::registry
