#include "src/runner/sets/named_sets.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"
#include "sconce/excerpt.h"

namespace sconce::runner {
namespace {

// Counts a set in the pool until its entry does.
class Added {
 public:
  Added(SetPool& pool, const ConstantSet& set) : pool_(pool), set_(set) { pool.add(set); }
  ~Added() {
    if (!kept_) pool_.remove(set_);
  }
  Added(const Added&) = delete;
  Added& operator=(const Added&) = delete;
  void keep() noexcept { kept_ = true; }

 private:
  SetPool& pool_;
  const ConstantSet& set_;
  bool kept_ = false;
};

}  // namespace

NamedSets::NamedSets(const ConstantTable& table, Values packaged, Limits limits, Owner owner)
    : table_(table), limits_(std::move(limits)), owner_(std::move(owner)), pool_(table, packaged) {
  if (limits_.folder.empty()) return;
  folder_.emplace(limits_.folder, table, std::move(packaged));
  auto files = folder_->list();
  // If there are too many, the latest count.
  while (files.size() > limits_.sets)
    files.erase(std::min_element(files.begin(), files.end(),
                                 [](const auto& a, const auto& b) { return a.second.written < b.second.written; }));
  for (const auto& [name, file] : files) {
    Entry entry;
    entry.generation = owner_.next_generation();
    entry.has_file = true;
    entry.bytes = entry.file_bytes = entry.need = file.bytes;
    entry.since = entry.used = file.written;
    entries_.emplace(name, std::move(entry));
  }
}

const NamedSets::Entry& NamedSets::at(std::string_view name) const {
  const auto found = entries_.find(name);
  SCONCE_CHECK(found != entries_.end(), kNotFound, "the model has no set '", excerpt(name), "'");
  return found->second;
}
NamedSets::Entry& NamedSets::at(std::string_view name) {
  return const_cast<Entry&>(static_cast<const NamedSets&>(*this).at(name));
}

void NamedSets::touch(const Entry& entry) const {
  entry.turn = ++turn_;
  entry.used = Clock::now();
}

NamedSets::Held NamedSets::find(std::string_view name) const {
  const MutexLock lock(mutex_);
  const Entry& entry = at(name);
  touch(entry);
  return entry.held;
}

NamedSets::Held NamedSets::bring(std::string_view name) {
  if (Held held = find(name)) return held;
  const MutexLock files(files_);
  // The limit holds while the set is read, too. Its entry stays as it is, because all changes hold files_.
  const Values active = owner_.active();
  std::vector<Held> left;
  uint64_t generation = 0, need = 0;
  {
    const MutexLock lock(mutex_);
    const Entry& entry = at(name);
    if (entry.held) return entry.held;
    generation = entry.generation;
    make_room(std::min(entry.need, limits_.memory), *active, name, left);
  }
  say_left(left);
  left.clear();
  const SetFolder::Content content = folder_->read(std::string(name));
  const Held held = owner_.make(std::string(name), generation, share(*content.set));
  {
    const MutexLock lock(mutex_);
    need = make_room(*held->values, *active, name, left);
  }
  say_left(left);
  Added added(pool_, *held->values);
  const MutexLock lock(mutex_);
  Entry& entry = at(name);
  entry.label = content.label;
  entry.held = held;
  added.keep();
  entry.need = need;
  entry.bytes = held->values->bytes();
  return held;
}

void NamedSets::check_name(const std::string& name) const {
  SCONCE_CHECK(is_set_name(name), kInvalidArgument, "not a set's name: '", excerpt(name),
               "': 1 to 64 of A-Z a-z 0-9 . _ - are, without a dot at the start");
  SCONCE_CHECK(name != "active", kInvalidArgument, "'active' is the name of the active set");
  const MutexLock lock(mutex_);
  SCONCE_CHECK(entries_.contains(name) || entries_.size() < limits_.sets, kOutOfMemory, "the model has ",
               entries_.size(), " named sets, the most that it may hold (setting sets): remove one first");
}

bool NamedSets::make_room(uint64_t further, const ConstantSet& active, std::string_view keep, std::vector<Held>& left) {
  if (limits_.memory == 0) return true;
  for (;;) {
    const uint64_t bytes = pool_.bytes(active);
    if (bytes <= limits_.memory && further <= limits_.memory - bytes) return true;
    Entry* oldest = nullptr;
    for (auto& [name, entry] : entries_)
      if (entry.held && entry.has_file && name != keep && (!oldest || entry.turn < oldest->turn)) oldest = &entry;
    if (!oldest) return false;
    left.push_back(oldest->held);
    pool_.remove(*oldest->held->values);
    oldest->held.reset();
  }
}

uint64_t NamedSets::make_room(const ConstantSet& values, const ConstantSet& active, std::string_view name,
                              std::vector<Held>& left) {
  const auto before = entries_.find(name);
  const bool replaces = before != entries_.end() && before->second.held;
  const uint64_t freed = replaces ? pool_.own_bytes(*before->second.held->values, active) : 0;
  const uint64_t further = pool_.further_bytes(values, active);
  SCONCE_CHECK(make_room(further - std::min(further, freed), active, name, left), kOutOfMemory, "set '", excerpt(name),
               "' needs ", further, " bytes, and the named sets hold ", pool_.bytes(active), " of ", limits_.memory,
               " (setting sets_memory)",
               folder_ ? "" : "; there is no folder to which others could go (setting sets_dir)");
  return further;
}

void NamedSets::settle() {
  const Values active = owner_.active();
  std::vector<Held> left;
  const MutexLock files(files_);
  {
    const MutexLock lock(mutex_);
    make_room(0, *active, {}, left);
  }
  say_left(left);
}

void NamedSets::say_left(const std::vector<Held>& left) const {
  for (const Held& held : left) held->leave();
  if (!left.empty()) owner_.left(left);
}

void NamedSets::put(const std::string& name, const std::string& label, const Values& values) {
  check_name(name);
  const Held held = owner_.make(name, owner_.next_generation(), values);
  const Values active = owner_.active();
  std::vector<Held> left;
  uint64_t need = 0;
  const MutexLock files(files_);
  {
    const MutexLock lock(mutex_);
    need = make_room(*held->values, *active, name, left);
  }
  say_left(left);
  left.clear();
  const uint64_t file_bytes = folder_ ? folder_->write(name, label, *held->values) : 0;
  Added added(pool_, *held->values);
  Entry entry;
  entry.held = held;
  entry.label = label;
  entry.generation = held->generation();
  entry.has_file = folder_.has_value();
  entry.file_bytes = file_bytes;
  entry.need = need;
  entry.bytes = held->values->bytes();
  entry.since = Clock::now();
  left.reserve(1);
  {
    const MutexLock lock(mutex_);
    touch(entry);
    const auto [it, fresh] = entries_.try_emplace(name);
    std::swap(it->second, entry);
    added.keep();
    if (entry.held) {
      pool_.remove(*entry.held->values);
      left.push_back(std::move(entry.held));
    }
  }
  say_left(left);
}

void NamedSets::remove(std::string_view name) {
  std::vector<Held> left;
  const MutexLock files(files_);
  {
    const MutexLock lock(mutex_);
    Entry& entry = at(name);
    if (entry.held) {
      left.push_back(entry.held);
      pool_.remove(*entry.held->values);
    }
    if (folder_) folder_->remove(std::string(name));
    entries_.erase(entries_.find(name));
  }
  say_left(left);
}

std::vector<NamedSetInfo> NamedSets::list() const {
  std::vector<NamedSetInfo> result;
  std::vector<Held> held;
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, entry] : entries_) {
      NamedSetInfo& info = result.emplace_back();
      info.name = name;
      info.label = entry.label;
      info.generation = entry.generation;
      info.on_disk = !entry.held;
      info.bytes = entry.bytes;
      info.own_bytes = entry.file_bytes;
      info.replicas = entry.held ? entry.held->replicas() : 0;
      info.since = entry.since;
      info.used = entry.used;
      held.push_back(entry.held);
    }
  }
  // Without the lock, which requests need.
  const Values active = owner_.active();
  for (size_t i = 0; i < result.size(); ++i)
    if (held[i]) result[i].own_bytes = pool_.own_bytes(*held[i]->values, *active);
  return result;
}

NamedSetsMemory NamedSets::memory() const {
  const Values active = owner_.active();
  NamedSetsMemory result{pool_.bytes(*active), limits_.memory, 0, 0};
  const MutexLock lock(mutex_);
  for (const auto& [name, entry] : entries_) ++(entry.held ? result.in_memory : result.on_disk);
  return result;
}

std::string NamedSets::label(std::string_view name) const {
  const MutexLock lock(mutex_);
  return at(name).label;
}

}  // namespace sconce::runner
