// WeightStore: the folder in which published sets outlive the server (setting weights_keep).
//
//   DIR/.lock                         held by the server that uses the folder
//   DIR/MODEL/VERSION/journal.json    the kept sets: weight_journal.h
//   DIR/MODEL/VERSION/previous.json   the journal before it
//   DIR/MODEL/VERSION/HEX.safetensors a complete set, named by its digest
//
// A set is kept once the journal that names its file has replaced the last one. Files come before the journal that
// names them and go after it, so a crash at any moment leaves the journal before or after, and the files that it names.
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

namespace sconce::server {

// The kept sets of one version of a model. Thread-safe.
class StoredWeights {
 public:
  // place: what the seals of its journals are about. seal: outlives this.
  StoredWeights(std::filesystem::path folder, std::string place, const Seal& seal);

  // Held from the commit of a set until it is kept, and while a newly loaded model begins to be served: a set is
  // committed either before, and found in the journal, or after, to the new model.
  Mutex& turn() noexcept SCONCE_RETURN_CAPABILITY(turn_) { return turn_; }

  // The kept sets that a model may start with.
  struct Found {
    Journal journal;
    uint64_t last = 0;    // no set that was published had a higher number
    std::string problem;  // why the journal, or the last one, cannot be read; empty: nothing is wrong
    uint64_t revision = 0;
  };
  Found find() const;
  std::filesystem::path path(const KeptSet& set) const { return folder_ / set.file; }
  // The file as it was written; null if nothing is sealed. kCorruptPackage if it is not; kIo, kOutOfMemory.
  std::shared_ptr<const PrivateCopy> unsealed(const KeptSet& set) const;
  // Increases with each set that is kept.
  uint64_t revision() const noexcept { return revision_.load(); }

  // What is kept with a set.
  struct Notes {
    PublishedBy by;
    std::optional<KeptGuard> guard = {};  // not if the set before has the same values: going back would change nothing
    std::optional<KeptPush> push = {};    // that published the set, or was undone by it
  };
  // Keeps a set that was published, then removes files that no set has any more. Returns when it is on the disk; "",
  // or why it is not. The sets before, and their notes, are then as they were.
  std::string keep(std::unique_ptr<WeightSetFile> set, Notes notes) SCONCE_REQUIRES(turn_);

  // Changes the watch over the newest set. Does nothing if that has another generation, or is not watched. Returns ""
  // when it is on the disk, or why it is not; the journal is then as it was.
  std::string change_guard(uint64_t generation, const std::function<void(std::optional<KeptGuard>&)>& change)
      SCONCE_REQUIRES(turn_);
  // Keeps what became of a push, in the same way.
  std::string note(KeptPush push) SCONCE_REQUIRES(turn_);
  // The newest set, and the push that it came with, get a larger number. Does nothing if the set has another digest.
  // Throws if that cannot be kept; a restart then finds the old number or the new one.
  void renumber(const std::string& digest, uint64_t generation) SCONCE_REQUIRES(turn_);

  // Notes that the set's file is damaged. A set with the same digest is then written to a new file instead of reusing
  // it.
  void damaged(const KeptSet& set);

  // What documents and metrics say about the kept sets of the served model.
  struct Status {
    uint64_t generation = 0;  // that is kept; 0: none
    std::string problem;
  };
  Status status() const;
  void note(std::string problem);  // the active set is not kept, for that reason; counts a failure
  void count_failure() noexcept { failures_.fetch_add(1, std::memory_order_relaxed); }
  void report(uint64_t generation, std::string problem);
  uint64_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }

 private:
  void write(std::unique_ptr<WeightSetFile> set, Notes notes);
  void write_file(std::unique_ptr<WeightSetFile> set, const Descriptor& directory, KeptSet& next);
  void write_journal(const Descriptor& directory, const Journal& journal) const;
  // Replaces the journal alone, if `change` returns true. Throws if it cannot be read or written.
  void rewrite(const std::function<bool(Journal&)>& change);
  Journal read(const char* name) const;
  bool is_damaged(const std::string& digest) const;
  void remove_others(const std::vector<KeptSet>& kept) const;

  const std::filesystem::path folder_;
  const std::string place_;
  const Seal& seal_;
  Mutex turn_;
  std::atomic<uint64_t> revision_{0}, failures_{0};
  mutable Mutex mutex_;
  Status status_ SCONCE_GUARDED_BY(mutex_);
  std::set<std::string> damaged_ SCONCE_GUARDED_BY(mutex_);  // digests
};

// Thread-safe.
class WeightStore {
 public:
  // Makes the directory if it is not there. Empty: nothing is kept. seal_key: as setting weights_keep_key.
  // kInvalidArgument if another server uses it, or for the key; kIo.
  explicit WeightStore(const std::string& directory, const std::string& seal_key = {});

  // Null if nothing is kept. The same object for the same version.
  std::shared_ptr<StoredWeights> of(const std::string& model, int64_t version);

 private:
  const std::filesystem::path directory_;
  const Seal seal_;
  Descriptor lock_;
  Mutex mutex_;
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<StoredWeights>> models_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server
