#include "src/runner/sets/named_sets.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"
#include "src/support/excerpt.h"

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
    : limits_(std::move(limits)), owner_(std::move(owner)), pool_(table, packaged) {
  if (limits_.folder.empty()) return;
  folder_.emplace(limits_.folder, table, std::move(packaged));
  auto files = folder_->list();
  // If there are too many, the latest count.
  while (files.size() > limits_.sets)
    files.erase(std::min_element(files.begin(), files.end(),
                                 [](const auto& a, const auto& b) { return a.second.written < b.second.written; }));
  for (const auto& [name, file] : files) {
    Entry entry;
    entry.weight_version = file.weight_version;
    if (file.weight_version != 0) owner_.weight_version_used(file.weight_version);
    entry.has_file = true;
    entry.words = {file.label, file.note};
    entry.bytes = entry.file_bytes = entry.need = file.bytes;
    entry.since = entry.used = file.written;
    entries_.emplace(name, std::move(entry));
  }
  for (auto& [name, entry] : entries_)
    if (entry.weight_version == 0) entry.weight_version = owner_.next_weight_version();
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
  entry.last_use = ++uses_;
  entry.used = Clock::now();
}

NamedSets::SetPtr NamedSets::find(std::string_view name) const {
  const MutexLock lock(mutex_);
  const Entry& entry = at(name);
  touch(entry);
  return entry.held;
}

NamedSets::SetPtr NamedSets::bring(std::string_view name) {
  if (SetPtr held = find(name)) return held;
  const MutexLock files(files_);
  // The limit holds while the set is read, too. Its entry stays as it is, because all changes hold files_.
  const Values active = owner_.active();
  std::vector<SetPtr> left;
  uint64_t weight_version = 0, need = 0;
  {
    const MutexLock lock(mutex_);
    const Entry& entry = at(name);
    if (entry.held) return entry.held;
    weight_version = entry.weight_version;
    make_room(std::min(entry.need, limits_.memory), *active, name, left);
  }
  say_left(left);
  left.clear();
  SetFolder::Content content = folder_->read(std::string(name));
  const SetPtr held = owner_.make(std::string(name), weight_version, share(*content.set));
  {
    const MutexLock lock(mutex_);
    need = make_room(*held->values, *active, name, true, left);
  }
  say_left(left);
  Added added(pool_, *held->values);
  const MutexLock lock(mutex_);
  Entry& entry = at(name);
  entry.words = std::move(content.words);
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
  const auto fresh = [&](const auto& one) {
    mutex_.assert_held();
    return !entries_.contains(one.first);
  };
  const size_t names = entries_.size() + static_cast<size_t>(std::count_if(waiting_.begin(), waiting_.end(), fresh));
  SCONCE_CHECK(entries_.contains(name) || waiting_.contains(name) || names < limits_.sets, kOutOfMemory,
               "the model has ", names, " named sets, the most that it may hold (setting sets): remove one first");
  SCONCE_CHECK(!waiting_.contains(name), kBusy, "a set waits for the name '", excerpt(name),
               "': it is to be committed or aborted first");
}

void NamedSets::leave(SetPtr& held, std::vector<SetPtr>& left) noexcept {
  pool_.remove(*held->values);
  left.push_back(std::move(held));
  held.reset();
}

bool NamedSets::make_room(uint64_t further, const ConstantSet& active, std::string_view keep,
                          std::vector<SetPtr>& left) {
  if (limits_.memory == 0) return true;
  left.reserve(left.size() + entries_.size() + replaced_.size());
  for (;;) {
    const uint64_t bytes = pool_.amount(active).total();
    if (bytes <= limits_.memory && further <= limits_.memory - bytes) return true;
    Entry* oldest = nullptr;
    for (auto& [name, entry] : entries_)
      if (entry.held && entry.has_file && name != keep && (!oldest || entry.last_use < oldest->last_use))
        oldest = &entry;
    if (!oldest) break;
    oldest->need = pool_.own(*oldest->held->values, active).total();
    leave(oldest->held, left);
  }
  const bool any =
      std::any_of(replaced_.begin(), replaced_.end(), [](const auto& one) { return one.second && one.second->held; });
  if (!any) return false;
  for (auto it = replaced_.begin(); it != replaced_.end();) {
    const bool held = it->second && it->second->held;
    if (held) leave(it->second->held, left);
    it = held ? replaced_.erase(it) : std::next(it);
  }
  return make_room(further, active, keep, left);
}

uint64_t NamedSets::make_room(const ConstantSet& values, const ConstantSet& active, std::string_view name,
                              bool replaces, std::vector<SetPtr>& left) {
  const auto before = entries_.find(name);
  const bool frees = replaces && before != entries_.end() && before->second.held;
  const uint64_t freed = frees ? pool_.own(*before->second.held->values, active).total() : 0;
  const uint64_t further = pool_.further(values, active).total();
  // A set that does not replace what its name has may send that to the disk.
  const std::string_view keep = replaces ? name : std::string_view();
  SCONCE_CHECK(make_room(further - std::min(further, freed), active, keep, left), kOutOfMemory, "set '", excerpt(name),
               "' needs ", further, " bytes, and the named sets hold ", pool_.amount(active).total(), " of ",
               limits_.memory, " (setting sets_memory)",
               folder_ ? "" : "; there is no folder to which others could go (setting sets_folder)");
  return further;
}

void NamedSets::reconcile() {
  const MutexLock files(files_);
  reconcile_now();
}

void NamedSets::reconcile_if_idle() {
  if (limits_.memory == 0 || !files_.try_lock()) return;
  const MutexLock files(files_, std::adopt_lock);
  reconcile_now();
}

void NamedSets::reconcile_now() {
  const Values active = owner_.active();
  std::vector<SetPtr> left;
  {
    const MutexLock lock(mutex_);
    make_room(0, *active, {}, left);
  }
  say_left(left);
}

void NamedSets::say_left(const std::vector<SetPtr>& left) const {
  for (const SetPtr& held : left) held->leave();
  if (!left.empty()) owner_.left(left);
}

void NamedSets::put(const std::string& name, const Words& words, const Values& values, bool hold) {
  check_name(name);
  const SetPtr held = owner_.make(name, owner_.next_weight_version(), values);
  const Values active = owner_.active();
  std::vector<SetPtr> left;
  uint64_t need = 0;
  const MutexLock files(files_);
  {
    const MutexLock lock(mutex_);
    need = make_room(*held->values, *active, name, !hold, left);
  }
  say_left(left);
  left.clear();
  const auto place = hold ? SetFolder::Place::kWaiting : SetFolder::Place::kNamed;
  const uint64_t file_bytes = folder_ ? folder_->write(name, words, held->weight_version(), *held->values, place) : 0;
  Added added(pool_, *held->values);
  Entry entry;
  entry.held = held;
  entry.words = words;
  entry.weight_version = held->weight_version();
  entry.has_file = folder_.has_value();
  entry.file_bytes = file_bytes;
  entry.need = need;
  entry.bytes = held->values->bytes();
  entry.since = Clock::now();
  left.reserve(2);
  {
    const MutexLock lock(mutex_);
    touch(entry);
    const auto [it, fresh] = (hold ? waiting_ : entries_).try_emplace(name);
    std::swap(it->second, entry);
    added.keep();
    if (entry.held) leave(entry.held, left);
    if (!hold) forget_replaced(name, left);
  }
  say_left(left);
}

void NamedSets::forget_replaced(std::string_view name, std::vector<SetPtr>& left) {
  const auto found = replaced_.find(name);
  if (found == replaced_.end()) return;
  if (found->second && found->second->held) leave(found->second->held, left);
  if (folder_) folder_->drop_replaced(found->first);
  replaced_.erase(found);
}

// All memory is taken before the file gets the name; what follows cannot fail.
uint64_t NamedSets::commit(std::string_view name) {
  const std::string text(name);
  std::vector<SetPtr> left;
  left.reserve(3);
  const MutexLock files(files_);
  std::map<std::string, std::optional<Entry>, std::less<>> before;
  before.try_emplace(text);
  {
    const MutexLock lock(mutex_);
    SCONCE_CHECK(waiting_.contains(name), kFailedPrecondition, "no set waits for the name '", excerpt(name), "'");
  }
  if (folder_) folder_->publish(text);
  uint64_t weight_version = 0;
  {
    const MutexLock lock(mutex_);
    if (const auto earlier = replaced_.find(name); earlier != replaced_.end()) {
      if (earlier->second && earlier->second->held) leave(earlier->second->held, left);
      replaced_.erase(earlier);
    }
    auto fresh = waiting_.extract(waiting_.find(name));
    weight_version = fresh.mapped().weight_version;
    touch(fresh.mapped());
    fresh.mapped().since = fresh.mapped().used;
    if (const auto served = entries_.find(name); served != entries_.end()) {
      std::optional<Entry>& kept = before.begin()->second;
      kept = std::move(served->second);
      served->second = std::move(fresh.mapped());
      // The file is enough.
      if (kept->held && kept->has_file)
        leave(kept->held, left);
      else if (kept->held)
        left.push_back(kept->held);
    } else {
      entries_.insert(std::move(fresh));
    }
    replaced_.merge(before);
  }
  say_left(left);
  return weight_version;
}

void NamedSets::abort(std::string_view name) {
  const std::string text(name);
  std::vector<SetPtr> left;
  left.reserve(1);
  const MutexLock files(files_);
  {
    const MutexLock lock(mutex_);
    const auto found = waiting_.find(name);
    SCONCE_CHECK(found != waiting_.end(), kFailedPrecondition, "no set waits for the name '", excerpt(name), "'");
    leave(found->second.held, left);
    waiting_.erase(found);
  }
  if (folder_) folder_->drop_waiting(text);
  say_left(left);
}

uint64_t NamedSets::restore(std::string_view name) {
  const std::string text(name);
  std::vector<SetPtr> left;
  left.reserve(2);
  const MutexLock files(files_);
  const uint64_t weight_version = owner_.next_weight_version();
  Values values;
  bool was_there = false;
  {
    const MutexLock lock(mutex_);
    const auto found = replaced_.find(name);
    SCONCE_CHECK(found != replaced_.end(), kFailedPrecondition, "nothing is kept that set '", excerpt(name),
                 "' has replaced");
    was_there = found->second.has_value();
    if (was_there && found->second->held) values = found->second->held->values;
  }
  // Replicas keep no container of the old object.
  SetPtr fresh = values ? owner_.make(text, weight_version, std::move(values)) : nullptr;
  if (folder_) folder_->restore(text, was_there, weight_version);
  {
    const MutexLock lock(mutex_);
    auto kept = replaced_.extract(replaced_.find(name));
    Entry& served = at(name);
    if (served.held) leave(served.held, left);
    if (was_there) {
      served = std::move(*kept.mapped());
      served.weight_version = weight_version;
      served.held = std::move(fresh);
      touch(served);
    } else {
      entries_.erase(entries_.find(name));
    }
  }
  say_left(left);
  return weight_version;
}

void NamedSets::set_version(std::string_view name, uint64_t from, uint64_t to) {
  const std::string text(name);
  const SetPtr before = bring(name);  // the file is written anew
  std::vector<SetPtr> left;
  left.reserve(1);
  const MutexLock files(files_);
  Words words;
  {
    const MutexLock lock(mutex_);
    const Entry& entry = at(name);
    SCONCE_CHECK(entry.weight_version == from && before->weight_version() == from, kBusy, "set '", excerpt(name),
                 "' has weight version ", entry.weight_version, ", not ", from);
    SCONCE_CHECK(!waiting_.contains(name), kBusy, "a set waits for the name '", excerpt(name), "'");
    words = entry.words;
  }
  SCONCE_CHECK(to > from, kInvalidArgument, "set '", excerpt(name), "' has weight version ", from,
               ", and numbers only grow: it cannot be ", to);
  owner_.weight_version_used(to);
  const SetPtr fresh = owner_.make(text, to, before->values);
  Added added(pool_, *fresh->values);
  if (folder_) folder_->write(text, words, to, *fresh->values, SetFolder::Place::kNamed);
  {
    const MutexLock lock(mutex_);
    Entry& entry = at(name);
    if (entry.held) leave(entry.held, left);
    entry.held = fresh;
    entry.weight_version = to;
    added.keep();
  }
  say_left(left);
  reconcile_now();  // it may have left memory meanwhile
}

void NamedSets::remove(std::string_view name) {
  std::vector<SetPtr> left;
  left.reserve(2);
  const MutexLock files(files_);
  {
    const MutexLock lock(mutex_);
    Entry& entry = at(name);
    if (entry.held) leave(entry.held, left);
    if (folder_) folder_->remove(std::string(name));
    entries_.erase(entries_.find(name));
    forget_replaced(name, left);
  }
  say_left(left);
}

NamedSetInfo NamedSets::describe(const std::string& name, const Entry& entry) {
  NamedSetInfo info;
  info.name = name;
  info.label = entry.words.label;
  info.note = entry.words.note;
  info.weight_version = entry.weight_version;
  info.on_disk = !entry.held;
  info.bytes = entry.bytes;
  info.own_bytes = entry.file_bytes;
  info.replicas = entry.held ? entry.held->replicas() : 0;
  info.since = entry.since;
  info.used = entry.used;
  return info;
}

void NamedSets::add_amounts(NamedSetInfo& info, const SetPtr& held) const {
  if (!held) return;
  const SetPool::Amount own = pool_.own(*held->values, *owner_.active());
  info.own_bytes = own.plain;
  info.packed_bytes = own.packed;
}

std::vector<NamedSetInfo> NamedSets::list() const {
  std::vector<NamedSetInfo> result;
  std::vector<SetPtr> held;
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, entry] : entries_) {
      result.push_back(describe(name, entry));
      held.push_back(entry.held);
    }
  }
  // Without the lock, which requests need.
  for (size_t i = 0; i < result.size(); ++i) add_amounts(result[i], held[i]);
  return result;
}

NamedSetInfo NamedSets::info(std::string_view name) const {
  NamedSetInfo result;
  SetPtr held;
  {
    const MutexLock lock(mutex_);
    const Entry& entry = at(name);
    result = describe(std::string(name), entry);
    held = entry.held;
  }
  add_amounts(result, held);
  return result;
}

NamedSetsMemory NamedSets::memory() const {
  const SetPool::Amount amount = pool_.amount(*owner_.active());
  NamedSetsMemory result{amount.total(), amount.packed, limits_.memory, 0, 0};
  const MutexLock lock(mutex_);
  for (const auto& [name, entry] : entries_) ++(entry.held ? result.in_memory : result.on_disk);
  return result;
}

std::string NamedSets::label(std::string_view name) const {
  const MutexLock lock(mutex_);
  return at(name).words.label;
}

}  // namespace sconce::runner
