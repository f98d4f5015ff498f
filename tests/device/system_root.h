// A folder with a few of the files that /proc and /sys have.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace sconce::test {

class SystemRoot {
 public:
  SystemRoot() { std::filesystem::create_directories(path); }
  ~SystemRoot() { std::filesystem::remove_all(path); }
  SystemRoot(const SystemRoot&) = delete;
  SystemRoot& operator=(const SystemRoot&) = delete;
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("sconce-system-root-" + std::to_string(getpid()));
};

}  // namespace sconce::test
