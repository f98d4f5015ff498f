// NamedSets: the named sets of a model: which there are, which of them are in memory, and what these may hold.
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
#include "src/runner/sets/held_set.h"
#include "src/runner/sets/set_folder.h"
#include "src/runner/sets/set_pool.h"

namespace sconce::runner {

class NamedSets {
 public:
  using Held = std::shared_ptr<const HeldSet>;
  using Values = std::shared_ptr<const ConstantSet>;
  struct Limits {
    size_t sets = 0;
    uint64_t memory = 0;  // 0: none
    std::filesystem::path folder;
  };
  // The functions of the runner that the sets call.
  struct Owner {
    std::function<uint64_t()> next_generation;
    std::function<Values()> active;
    // Makes a set of values that are complete: on devices, packed, checked.
    std::function<Held(std::string name, uint64_t generation, Values values)> make;
    // Drops the replicas' containers of sets that left.
    std::function<void(const std::vector<Held>&)> left;
  };
  NamedSets(const ConstantTable& table, Values packaged, Limits limits, Owner owner);

  // Null: on disk. kNotFound.
  Held find(std::string_view name) const;
  // Reads it from disk if need be; others who ask for it meanwhile wait. As Model::bring_set().
  Held bring(std::string_view name);

  // Before an update: the name is good, and there is room for one more set of that name.
  void check_name(const std::string& name) const;
  // Values that others have as well are taken from there.
  Values share(const ConstantSet& set) const { return pool_.share(set, *owner_.active()); }
  // Puts the set under the name, in place of another. kOutOfMemory, kIo: nothing changed.
  void put(const std::string& name, const std::string& label, const Values& values);
  void remove(std::string_view name);
  // Call this after another set became active, because other values are shared with it now.
  void settle();

  std::vector<NamedSetInfo> list() const;
  NamedSetsMemory memory() const;
  std::string label(std::string_view name) const;  // kNotFound

 private:
  using Clock = std::chrono::system_clock;
  struct Entry {
    Held held;  // null: on disk
    std::string label;
    uint64_t generation = 0;
    bool has_file = false;
    uint64_t file_bytes = 0, bytes = 0;
    uint64_t need = 0;  // memory that it took when it last came there; a guess at what it will take
    Clock::time_point since;
    mutable Clock::time_point used;
    mutable uint64_t turn = 0;  // of the last use
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  Entry& at(std::string_view name) SCONCE_REQUIRES(mutex_);
  const Entry& at(std::string_view name) const SCONCE_REQUIRES(mutex_);
  void touch(const Entry& entry) const SCONCE_REQUIRES(mutex_);
  // Moves sets out of memory, but not `keep`, until `further` bytes more are within the limit. Returns whether they
  // are.
  bool make_room(uint64_t further, const ConstantSet& active, std::string_view keep, std::vector<Held>& left)
      SCONCE_REQUIRES(mutex_);
  // The same before the values are added; returns the bytes that they need. kOutOfMemory.
  uint64_t make_room(const ConstantSet& values, const ConstantSet& active, std::string_view name,
                     std::vector<Held>& left) SCONCE_REQUIRES(mutex_);
  void say_left(const std::vector<Held>& left) const;

  const ConstantTable& table_;
  const Limits limits_;
  const Owner owner_;
  SetPool pool_;
  std::optional<SetFolder> folder_;
  Mutex files_;  // held around files; taken before mutex_
  mutable Mutex mutex_;
  Entries entries_ SCONCE_GUARDED_BY(mutex_);
  mutable uint64_t turn_ SCONCE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sconce::runner
