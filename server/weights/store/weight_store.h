// WeightStore: the folder in which published weight sets survive a restart (setting weights_store).
//
//   DIR/.lock                         locked by the server that uses the folder
//   DIR/MODEL/VERSION/journal.json    the stored sets: weight_journal.h
//   DIR/MODEL/VERSION/previous.json   the previous journal
//   DIR/MODEL/VERSION/HEX.safetensors a complete set, named by its digest
//
// A set is stored once a journal that names its file has replaced the previous journal. Files are written before the
// journal that names them and removed after it. A crash at any moment therefore leaves the old or the new journal, and
// the files that it names.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sconce/mutex.h"
#include "sconce/weight_sources.h"
#include "server/support/files/private_copy.h"
#include "server/weights/store/durable_file.h"
#include "server/weights/store/seal.h"
#include "server/weights/store/weight_journal.h"

namespace sconce::server::weights {

// The stored sets of one version of a model. Thread-safe.
class StoredWeights {
 public:
  // place: the location that the seals of its journals cover. seal: outlives this object.
  StoredWeights(std::filesystem::path folder, std::string place, const Seal& seal);

  // Locked from the commit of a set until it is stored, and while a newly loaded model starts to be served. A set is
  // therefore committed either before, and found in the journal, or after, to the new model.
  Mutex& write_mutex() noexcept SCONCE_RETURN_CAPABILITY(write_mutex_) { return write_mutex_; }

  // The stored sets that a model may start with.
  struct Found {
    Journal journal;
    uint64_t last = 0;    // the highest weight version of any published set
    std::string problem;  // why the journal or the previous journal cannot be read; empty: no problem
    uint64_t revision = 0;
  };
  Found find() const;
  std::filesystem::path path(const StoredSet& set) const { return folder_ / set.file; }
  // The file as it was written; null without a seal key. kCorruptPackage if the file has changed; kIo, kOutOfMemory.
  std::shared_ptr<const PrivateCopy> unsealed(const StoredSet& set) const;
  // Increases with each stored set.
  uint64_t revision() const noexcept { return revision_.load(); }

  // Data that is stored with a set.
  struct Notes {
    PublishedBy by;
    std::optional<StoredGuard> guard =
        {};  // empty if the previous set has the same values, because a rollback would change nothing
    std::optional<StoredPush> push = {};  // the push that published the set, or that the set has undone
  };
  // Stores a published set, then removes files that no set needs. Returns when the set is on disk: "", or the reason of
  // a failure. After a failure, the previous sets and their notes are unchanged.
  std::string store(std::unique_ptr<WeightSetFile> set, Notes notes) SCONCE_REQUIRES(write_mutex_);

  // Changes the guard of the newest set. Does nothing if that set has another weight version or no guard. Returns ""
  // when the change is on disk, or the reason of a failure; then the journal is unchanged.
  std::string change_guard(uint64_t weight_version, const std::function<void(std::optional<StoredGuard>&)>& change)
      SCONCE_REQUIRES(write_mutex_);
  // Stores the outcome of a push, in the same way.
  std::string note(StoredPush push) SCONCE_REQUIRES(write_mutex_);
  // Raises the weight version of the newest set and of its push. Does nothing if the set has another digest. Throws if
  // the change cannot be stored; a restart then finds the old or the new version.
  void set_weight_version(const std::string& digest, uint64_t weight_version) SCONCE_REQUIRES(write_mutex_);

  // Records that the set's file is damaged. A set with the same digest is then written to a new file instead of reusing
  // this one.
  void damaged(const StoredSet& set);

  // Reported in documents and metrics about the stored sets of the served model.
  struct Status {
    uint64_t weight_version = 0;  // weight version of the stored set; 0: none
    std::string problem;
  };
  Status status() const;
  void note(std::string problem);  // records why the active set is not stored; counts a failure
  void count_failure() noexcept { failures_.fetch_add(1, std::memory_order_relaxed); }
  void report(uint64_t weight_version, std::string problem);
  uint64_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }

 private:
  void write(std::unique_ptr<WeightSetFile> set, Notes notes);
  void write_file(std::unique_ptr<WeightSetFile> set, const Descriptor& directory, StoredSet& next);
  void write_journal(const Descriptor& directory, const Journal& journal) const;
  // Replaces only the journal, if `change` returns true. Throws if the journal cannot be read or written.
  void rewrite(const std::function<bool(Journal&)>& change);
  Journal read(const char* name) const;
  bool is_damaged(const std::string& digest) const;
  void remove_others(const std::vector<StoredSet>& stored) const;

  const std::filesystem::path folder_;
  const std::string place_;
  const Seal& seal_;
  Mutex write_mutex_;
  std::atomic<uint64_t> revision_{0}, failures_{0};
  mutable Mutex mutex_;
  Status status_ SCONCE_GUARDED_BY(mutex_);
  std::set<std::string> damaged_ SCONCE_GUARDED_BY(mutex_);  // digests
};

// Thread-safe.
class WeightStore {
 public:
  // Creates the directory if needed. Empty: nothing is stored. seal_key: as in setting weights_store_key.
  // kInvalidArgument if another server uses the directory, or for the key; kIo.
  explicit WeightStore(const std::string& directory, const std::string& seal_key = {});

  // Null without a directory. Returns the same object for the same version.
  std::shared_ptr<StoredWeights> of(const std::string& model, int64_t version);

 private:
  const std::filesystem::path directory_;
  const Seal seal_;
  Descriptor lock_;
  Mutex mutex_;
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<StoredWeights>> models_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::weights
