// SetInstances: a replica's instances of named sets, the last used first. Used by the thread that holds the replica.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "src/runner/replicas/replica.h"
#include "src/runner/sets/loaded_set.h"

namespace sconce::runner {

class SetInstances {
 public:
  // slot: of the replica.
  SetInstances(size_t slot, size_t most) : slot_(slot), most_(most) {}
  ~SetInstances() {
    while (!entries_.empty()) drop(entries_.begin());
  }
  SetInstances(const SetInstances&) = delete;
  SetInstances& operator=(const SetInstances&) = delete;

  // Null: there is no instance of it.
  ModelInstance* find(const LoadedSet& set) {
    const auto found = by_set_.find(&set);
    if (found == by_set_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return entries_.front().second.get();
  }
  // Frees the instance that a new one would displace, so that there are never more than the limit.
  void make_room() noexcept {
    while (entries_.size() >= most_ && !entries_.empty()) drop(std::prev(entries_.end()));
  }
  ModelInstance& keep(std::shared_ptr<const LoadedSet> set, std::unique_ptr<ModelInstance> instance) {
    entries_.emplace_front(std::move(set), std::move(instance));
    const Entry& entry = entries_.front();
    struct Undo {
      Entries& entries;
      bool done = false;
      ~Undo() {
        if (!done) entries.pop_front();
      }
    } undo{entries_};
    by_set_.emplace(entry.first.get(), entries_.begin());
    undo.done = true;
    entry.first->add_instance(slot_);
    return *entry.second;
  }
  void forget(const LoadedSet& set) noexcept {
    if (const auto found = by_set_.find(&set); found != by_set_.end()) drop(found->second);
  }
  size_t size() const noexcept { return entries_.size(); }

 private:
  using Entry = std::pair<std::shared_ptr<const LoadedSet>, std::unique_ptr<ModelInstance>>;
  using Entries = std::list<Entry>;
  void drop(Entries::iterator entry) noexcept {
    by_set_.erase(entry->first.get());
    entry->first->remove_instance(slot_);
    entries_.erase(entry);
  }

  const size_t slot_, most_;
  Entries entries_;
  std::unordered_map<const LoadedSet*, Entries::iterator> by_set_;  // the entries keep their sets, so addresses differ
};

}  // namespace sconce::runner
