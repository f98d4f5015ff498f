// A folder whose paths are text, to be put into command lines.
#pragma once

#include <string>

#include "tests/files.h"

namespace sconce {

class ScratchFolder {
 public:
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text).string();
  }

 private:
  TempFolder folder_;
};

}  // namespace sconce
