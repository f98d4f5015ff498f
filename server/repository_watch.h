// RepositoryWatch: notices what is added to the repositories, replaced in them and removed. Control thread.
//
// A package counts when two looks in a row saw the same file: size, time of modification and inode. So one that is
// still being written waits, one that was renamed into place is taken at the second look, and a file that is gone for
// one look, to be there again at the next, is not removed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/package_finder.h"

namespace sconce {

class RepositoryWatch {
 public:
  // Notices what differs from `files`.
  explicit RepositoryWatch(const std::vector<PackageFile>& files) : settled_(by_stem(files)) {}

  // Looks at what there is now; returns the stems whose packages differ from what they were when they were last
  // returned, and have settled.
  std::vector<std::string> look(const std::vector<PackageFile>& files);

 private:
  using Stems = std::map<std::string, std::vector<PackageFile>>;
  static Stems by_stem(const std::vector<PackageFile>& files);

  Stems settled_;  // what was last returned
  Stems pending_;  // differed from it in the last look
};

}  // namespace sconce
