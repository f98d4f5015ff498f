// Finds the cases behind the program's arguments: suite folders, case folders and suites packed as .tar.xz.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/conformance/run_case.h"

namespace sconce::conformance {

// A folder that goes with the object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

struct FoundCase {
  std::string name;  // "SUITE/FOLDER"
  std::filesystem::path folder;
};

// Packed suites are unpacked (with tar) below `scratch`. In order of name. Throws where an argument holds no case.
std::vector<FoundCase> find_cases(const std::vector<std::string>& arguments, const ScratchFolder& scratch);

}  // namespace sconce::conformance
