// RepositoryWatch: notices packages that are added to the repositories, replaced or removed. Used by the control
// thread.
//
// A change counts after two looks in a row saw the same size, modification time and inode. So a package that is being
// written waits, one that is renamed into place is taken at the second look, and a file that is missing for only one
// look is not removed. A package that could not be loaded is tried again, less and less often, because memory or
// descriptors may have been short.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/registry/repositories/package_finder.h"

namespace sconce::server {

class RepositoryWatch {
 public:
  // Notices differences from `files`, which count as returned.
  explicit RepositoryWatch(const std::vector<PackageFile>& files);

  // Adds what was last returned of repositories that could not be read: it has not changed, as far as anybody knows.
  void complete(FoundFiles& found) const;
  // Looks at the present files. Returns the stems whose packages differ from what was last returned and have settled,
  // and those to be tried again. If it throws, nothing changes.
  std::vector<std::string> look(const std::vector<PackageFile>& files);
  // Whether the next look finds nothing, unless files change before: nothing is pending, and nothing is to be tried
  // again.
  bool at_rest() const noexcept;
  // Whether something below the folder differed in the last look, and has not settled.
  bool is_pending_below(const std::filesystem::path& folder) const;
  // Reports that the packages of a stem from the last look could not be loaded. Later looks return it again, after 1,
  // 2, 4 and at most 64 looks, unless its packages change before.
  void failed(const std::string& stem) noexcept;

 private:
  using Stems = std::map<std::string, std::vector<PackageFile>>;
  static Stems by_stem(const std::vector<PackageFile>& files);

  struct Retry {
    int looks = 0;  // the length of the last wait
    int left = 0;   // 0: the last look returned it
  };

  Stems settled_;  // what was last returned
  Stems pending_;  // what differed from it in the last look
  std::map<std::string, Retry> retries_;
};

}  // namespace sconce::server
