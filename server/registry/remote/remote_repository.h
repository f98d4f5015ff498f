// RemoteRepository: one address of `serve` as a local folder. All served files are downloaded at each poll; on demand,
// each file is downloaded when its model is opened.
//
//   store --list--> groups: a model's files --cache--> mirror: NAME.pt2, NAME/VERSION/model.pt2
//                     |                                   |
//                     +---> view (names, validators) -----+--> PackageFinder lists one and opens the other
//
// A group changes as a whole: if a model's files cannot be downloaded, the model stays unchanged and the others are
// updated. Without a connection, the files in the mirror are served. On demand, the mirror holds a package only while
// it is in use; afterwards it is only in the cache, which may evict it. Thread-safe, except begin() and look().
#pragma once

#include <atomic>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sconce/error.h"
#include "sconce/mutex.h"
#include "server/registry/remote/listed_folder.h"
#include "server/registry/remote/remote_cache.h"
#include "server/registry/remote/remote_counters.h"
#include "server/registry/remote/remote_listing.h"
#include "server/registry/repositories/folder_view.h"
#include "server/support/config.h"

namespace sconce::server::registry {

// Shared by all addresses of a server. It outlives them.
struct RemoteShared {
  const ServerConfig& config;
  const RemoteAccess& access;
  const TransferSettings& transfer;
  RemoteCache& cache;
  RemoteCounters& counters;
  const std::atomic<bool>& stop;
};

class RemoteRepository final : public RemoteFolder {
 public:
  // model: the name of a single package's model; empty: a repository.
  RemoteRepository(const RemoteShared& shared, RemoteUrl url, std::string model, bool on_demand);

  const RemoteUrl& url() const noexcept { return url_; }
  const std::filesystem::path& folder() const noexcept { return folder_; }

  // The first poll. On demand, one page of the list is enough.
  void begin();
  // Polls everything. Returns whether that succeeded; a failure is logged if it differs from the last one.
  bool look();
  // Number of changes so far.
  uint64_t changes() const noexcept { return changes_; }
  // Of the last poll; empty: it succeeded.
  std::string problem() const;
  // Why the list of models is unknown; empty: it is known, possibly from an earlier poll.
  std::string why_unknown() const;

  std::shared_ptr<const FolderView> view() const override;
  void ask(std::string_view model) override;
  void prepare(const std::string& stem) override;
  std::shared_ptr<const void> bring(const std::filesystem::path& file) override;
  bool is_complete() const noexcept override { return !on_demand_ || listed_; }

 private:
  struct Group {
    std::vector<RemoteFile> files;  // validators without quotes
    std::string problem;            // why its files are not local; empty: they are, or will be downloaded on demand
    ErrorCode code = ErrorCode::kUnavailable;
    uint64_t asked = 0;
  };
  using Groups = std::map<std::string, Group, std::less<>>;

  void attempt(const std::function<void()>& work);
  void look_at_list();
  void look_at_package();
  void use_earlier();
  Groups groups_of(std::vector<RemoteFile> files) const;
  void take(std::string stem, Group listed, std::exception_ptr& problem);
  Group fetched(const std::string& stem, const Group& listed);
  void commit(const std::string& stem, Group group);
  void forget_others(const std::set<std::string>& stems, uint64_t asked);
  void bring_package();
  std::shared_ptr<const void> use(const std::string& package);
  void end_use(const std::string& package) noexcept;
  bool is_wanted(const std::string& path) const SCONCE_REQUIRES(mutex_);
  void has_changed() SCONCE_REQUIRES(mutex_);
  void prune();
  // True: the file was downloaded; false: it was already local.
  bool fetch(const std::string& path, const std::string& validator);
  void fetch_known(const std::string& path);
  RemoteUrl url_of(const std::string& path) const;
  std::string below(const std::filesystem::path& file) const;

  const RemoteShared& shared_;
  const RemoteUrl url_;
  const std::string model_;
  const bool on_demand_;
  const std::filesystem::path folder_;
  std::atomic<uint64_t> asks_{0};
  std::atomic<bool> listed_{false};
  std::atomic<uint64_t> changes_{0};

  mutable Mutex mutex_;
  Groups groups_ SCONCE_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const FolderView> view_ SCONCE_GUARDED_BY(mutex_);   // null: groups have changed
  std::multiset<std::string> taken_ SCONCE_GUARDED_BY(mutex_);                 // stems whose files are being downloaded
  std::map<std::string, size_t, std::less<>> uses_ SCONCE_GUARDED_BY(mutex_);  // number of uses of packages, on demand
  std::string problem_ SCONCE_GUARDED_BY(mutex_);
  bool known_ SCONCE_GUARDED_BY(mutex_) = false;
};

}  // namespace sconce::server::registry
