// RepositoryWatch: detects packages that are added to the repositories, replaced or removed. Used by the loader thread.
//
// A change is accepted once two consecutive polls find the same size, modification time and inode. A package that is
// being written therefore waits, a package that is renamed into place is accepted at the second poll, and a file that
// is missing in only one poll is not removed. A package that could not be loaded is retried with increasing delays,
// because memory or descriptors may have been short.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/registry/repositories/package_finder.h"

namespace sconce::server::registry {

class RepositoryWatch {
 public:
  // Detects differences from `files`, which count as returned.
  explicit RepositoryWatch(const std::vector<PackageFile>& files);

  // Adds the last returned files of repositories that could not be read, because no change of these is known.
  void complete(FoundFiles& found) const;
  // Compares the current files. Returns the stems whose packages differ from the last returned ones and are unchanged
  // since the last poll, and the stems to retry. If it throws, nothing changes.
  std::vector<std::string> look(const std::vector<PackageFile>& files);
  // Whether the next poll finds nothing unless files change: no change is pending, and no retry is due.
  bool at_rest() const noexcept;
  // Whether something below the folder differed in the last poll and is not yet accepted.
  bool is_pending_below(const std::filesystem::path& folder) const;
  // Reports that the packages of a stem from the last poll could not be loaded. The stem is returned again after 1, 2,
  // 4 and at most 64 polls, or earlier if its packages change.
  void failed(const std::string& stem) noexcept;

 private:
  using Stems = std::map<std::string, std::vector<PackageFile>>;
  static Stems by_stem(const std::vector<PackageFile>& files);

  struct Retry {
    int looks = 0;  // length of the last delay, in polls
    int left = 0;   // 0: the last poll returned it
  };

  Stems settled_;  // last returned files
  Stems pending_;  // files that differed from settled_ in the last poll
  std::map<std::string, Retry> retries_;
};

}  // namespace sconce::server::registry
