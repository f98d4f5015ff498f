// NamedSets: the named sets of a model: which there are, which of them are in memory, and what these may hold.
//
// A set may wait for its name (hold), until commit() gives it or abort() drops the set. What the name had before can be
// restored: from its file, or from memory as long as nobody else needs it.
//
// Beyond the limits the set that was asked for least lately leaves memory, if it has a file (SetFolder), and comes back
// when it is asked for. Whoever has a set keeps it; it only cannot be found in memory any more. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/mutex.h"
#include "sconce/weights.h"
#include "src/runner/sets/loaded_set.h"
#include "src/runner/sets/set_folder.h"
#include "src/runner/sets/set_pool.h"

namespace sconce::runner {

class NamedSets {
 public:
  using SetPtr = std::shared_ptr<const LoadedSet>;
  using Values = std::shared_ptr<const ConstantSet>;
  struct Limits {
    size_t sets = 0;
    uint64_t memory = 0;  // 0: none
    std::filesystem::path folder;
  };
  // The functions of the runner that the sets call.
  struct Owner {
    std::function<uint64_t()> next_weight_version;
    // Weight versions that are made from now on are larger than this.
    std::function<void(uint64_t)> weight_version_used;
    std::function<Values()> active;
    // Makes a set of values that are complete: on devices, packed, checked.
    std::function<SetPtr(std::string name, uint64_t weight_version, Values values)> make;
    // Drops the replicas' containers of sets that left.
    std::function<void(const std::vector<SetPtr>&)> left;
  };
  NamedSets(const ConstantTable& table, Values packaged, Limits limits, Owner owner);

  // Null: on disk. kNotFound.
  SetPtr find(std::string_view name) const;
  // Reads it from disk if need be; others who ask for it meanwhile wait. As Model::bring_set().
  SetPtr bring(std::string_view name);

  // Before an update: the name is good, and there is room for one more set of that name.
  void check_name(const std::string& name) const;
  // Values that others have as well are taken from there.
  Values share(const ConstantSet& set) const { return pool_.share(set, *owner_.active()); }
  std::string_view would_drop(const ConstantSet& set) const { return pool_.would_drop(set, *owner_.active()); }
  using Words = SetFolder::Words;
  // Puts the set under the name, in place of another, or lets it wait for the name. kBusy if another one waits;
  // kOutOfMemory, kIo: nothing changed.
  void put(const std::string& name, const Words& words, const Values& values, bool hold);
  // As Model::commit_set(), Model::abort_set() and Model::restore_set().
  uint64_t commit(std::string_view name);
  void abort(std::string_view name);
  uint64_t restore(std::string_view name);
  void set_version(std::string_view name, uint64_t from, uint64_t to);  // as Model::set_weight_version()
  void remove(std::string_view name);
  // Call this after another set became active, because other values are shared with it now.
  void reconcile();
  // Call this after a run has packed values, which takes memory. If others change the sets, it does nothing: they look
  // at the memory, too.
  void reconcile_if_idle();

  std::vector<NamedSetInfo> list() const;
  NamedSetInfo info(std::string_view name) const;  // kNotFound
  NamedSetsMemory memory() const;
  std::string label(std::string_view name) const;  // kNotFound

 private:
  using Clock = std::chrono::system_clock;
  struct Entry {
    SetPtr held;  // null: on disk
    Words words;
    uint64_t weight_version = 0;
    bool has_file = false;
    uint64_t file_bytes = 0, bytes = 0;
    uint64_t need = 0;  // memory that it took when it last came there; a guess at what it will take
    Clock::time_point since;
    mutable Clock::time_point used;
    mutable uint64_t last_use = 0;  // as counted by uses_
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  static NamedSetInfo describe(const std::string& name, const Entry& entry);
  void add_amounts(NamedSetInfo& info, const SetPtr& held) const;
  Entry& at(std::string_view name) SCONCE_REQUIRES(mutex_);
  const Entry& at(std::string_view name) const SCONCE_REQUIRES(mutex_);
  void touch(const Entry& entry) const SCONCE_REQUIRES(mutex_);
  // Moves sets out of memory, but not `keep`, until `further` bytes more are within the limit; then drops what could be
  // restored. Returns whether they are.
  bool make_room(uint64_t further, const ConstantSet& active, std::string_view keep, std::vector<SetPtr>& left)
      SCONCE_REQUIRES(mutex_);
  // The same before the values are added, in place of what the name has if they replace it; returns the bytes that they
  // need. kOutOfMemory.
  uint64_t make_room(const ConstantSet& values, const ConstantSet& active, std::string_view name, bool replaces,
                     std::vector<SetPtr>& left) SCONCE_REQUIRES(mutex_);
  // Takes a set out of memory, where its file or nobody needs it.
  void leave(SetPtr& held, std::vector<SetPtr>& left) noexcept SCONCE_REQUIRES(mutex_);
  void forget_replaced(std::string_view name, std::vector<SetPtr>& left) SCONCE_REQUIRES(mutex_);
  void reconcile_now() SCONCE_REQUIRES(files_);
  void say_left(const std::vector<SetPtr>& left) const;

  const Limits limits_;
  const Owner owner_;
  SetPool pool_;
  std::optional<SetFolder> folder_;
  Mutex files_;  // held around files; taken before mutex_
  mutable Mutex mutex_;
  Entries entries_ SCONCE_GUARDED_BY(mutex_);
  Entries waiting_ SCONCE_GUARDED_BY(mutex_);  // for their names; in memory
  // What commit() replaced; none: the name was new.
  std::map<std::string, std::optional<Entry>, std::less<>> replaced_ SCONCE_GUARDED_BY(mutex_);
  mutable uint64_t uses_ SCONCE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sconce::runner
