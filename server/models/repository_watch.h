// RepositoryWatch: notices what is added to the repositories, replaced in them and removed. Control thread.
//
// A package counts when two looks in a row saw the same file: size, time of modification and inode. So one that is
// still being written waits, one that was renamed into place is taken at the second look, and a file that is gone for
// one look, to be there again at the next, is not removed. A package that could not be loaded is tried again, less and
// less often: the reason may have been a lack of memory or descriptors that has passed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/models/package_finder.h"

namespace sconce::server {

class RepositoryWatch {
 public:
  // Notices what differs from `files`, which count as returned.
  explicit RepositoryWatch(const std::vector<PackageFile>& files);

  // Looks at what there is now; returns the stems whose packages differ from what they were when they were last
  // returned, and have settled; and those whose turn it is to be tried again. An exception changes nothing.
  std::vector<std::string> look(const std::vector<PackageFile>& files);
  // Says that the packages of a stem, which the last look returned, could not be loaded. Later looks return the stem
  // again, after 1, 2, 4 and at most 64 looks, unless its packages change before.
  void failed(const std::string& stem) noexcept;

 private:
  using Stems = std::map<std::string, std::vector<PackageFile>>;
  static Stems by_stem(const std::vector<PackageFile>& files);

  struct Retry {
    int looks = 0;  // how many the last wait had
    int left = 0;   // 0: was returned by the last look
  };

  Stems settled_;  // what was last returned
  Stems pending_;  // differed from it in the last look
  std::map<std::string, Retry> retries_;
};

}  // namespace sconce::server
