#include "server/weights/store/weight_store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "package_format/files/directory.h"
#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "server/support/time_text.h"
#include "src/support/hex.h"
#include "src/support/sha256.h"

namespace sconce::server::weights {
namespace {

namespace fs = std::filesystem;

constexpr const char *kJournal = "journal.json", *kBefore = "previous.json", *kLock = ".lock";
constexpr size_t kMaxStoredSets = 2;  // the active set and the one to roll back to
constexpr size_t kCopyBlock = size_t{1} << 20;

Descriptor open_folder(const fs::path& folder) {
  Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  SCONCE_CHECK(directory.get() >= 0, kIo, "cannot open ", folder.string(), ": ", system_reason());
  return directory;
}

// Creates the folder and makes its name durable.
void make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0) {
    const fs::path above = folder.parent_path();
    sync_directory(open_folder(above).get(), above.string());
    return;
  }
  SCONCE_CHECK(errno == EEXIST, kIo, "cannot make the directory ", folder.string(), ": ", system_reason());
}

// "sha-256:HEX" -> "HEX.safetensors"
std::string file_of(const std::string& digest) { return digest.substr(digest.find(':') + 1) + ".safetensors"; }

bool has_size(int directory, const std::string& file, uint64_t bytes) {
  struct stat status {};
  return ::fstatat(directory, file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
         static_cast<uint64_t>(status.st_size) == bytes;
}

}  // namespace

StoredWeights::StoredWeights(fs::path folder, std::string place, const Seal& seal)
    : folder_(std::move(folder)), place_(std::move(place)), seal_(seal) {}

Journal StoredWeights::read(const char* name) const {
  const Descriptor directory = open_folder(folder_);
  const std::string where = (folder_ / name).string();
  const std::string text = read_small_file(directory.get(), folder_.string(), name);
  return parse_journal(seal_.opened(text, place_, where), where);
}

void StoredWeights::write_journal(const Descriptor& directory, const Journal& journal) const {
  const std::string text = seal_.sealed(journal_text(journal), place_);
  DurableFile file(directory.get(), folder_.string(), kJournal);
  file.write(std::as_bytes(std::span(text)));
  file.keep();
}

std::shared_ptr<const PrivateCopy> StoredWeights::unsealed(const StoredSet& set) const {
  if (!seal_.on()) return nullptr;
  const std::string where = path(set).string();
  SCONCE_CHECK(!set.sha256.empty(), kCorruptPackage, where, ": it was stored without weights_store_key");
  auto copy = std::make_shared<const PrivateCopy>(path(set));
  SCONCE_CHECK(to_hex(sha256_of(copy->bytes())) == set.sha256, kCorruptPackage, where,
               ": it is not the file that was stored");
  return copy;
}

StoredWeights::Found StoredWeights::find() const {
  Found found;
  found.revision = revision_.load();
  std::error_code ec;
  if (!fs::exists(folder_ / kJournal, ec) && !fs::exists(folder_ / kBefore, ec)) return found;
  found.problem = problem_of([&] { found.journal = read(kJournal); });
  if (!found.problem.empty()) {
    succeeds([&] { found.journal = read(kBefore); });
    found.journal.guard.reset();  // the guarded set is no longer the newest
    // The damaged journal named at least one more set.
    found.last = 1;
  }
  for (const StoredSet& set : found.journal.sets)
    found.last = std::max(found.last, set.weight_version + !found.problem.empty());
  return found;
}

std::string StoredWeights::store(std::unique_ptr<WeightSetFile> set, Notes notes) {
  std::string problem = problem_of([&] { write(std::move(set), std::move(notes)); });
  if (!problem.empty()) note(problem);
  return problem;
}

std::string StoredWeights::change_guard(uint64_t weight_version,
                                        const std::function<void(std::optional<StoredGuard>&)>& change) {
  return problem_of([&] {
    rewrite([&](Journal& journal) {
      if (!journal.guard || journal.sets.front().weight_version != weight_version) return false;
      change(journal.guard);
      return true;
    });
  });
}

std::string StoredWeights::note(StoredPush push) {
  return problem_of([&] {
    rewrite([&](Journal& journal) {
      for (const StoredPush& known : journal.pushes)
        if (known.id == push.id && known.state == push.state && known.weight_version == push.weight_version)
          return false;
      for (const StoredSet& set : journal.sets) push.stored |= push.weight_version == set.weight_version;
      journal.note(std::move(push));
      return true;
    });
  });
}

void StoredWeights::set_weight_version(const std::string& digest, uint64_t weight_version) {
  bool found = false;
  rewrite([&](Journal& journal) {
    found = !journal.sets.empty() && journal.sets.front().digest == digest &&
            journal.sets.front().weight_version <= weight_version;
    if (!found) return false;
    const uint64_t before = std::exchange(journal.sets.front().weight_version, weight_version);
    for (StoredPush& push : journal.pushes)
      if (push.stored && push.weight_version == before) push.weight_version = weight_version;
    return true;
  });
  if (!found) return;
  revision_.fetch_add(1);
  report(weight_version, {});
}

void StoredWeights::rewrite(const std::function<bool(Journal&)>& change) {
  Found found = find();
  // If the journal is damaged, the remaining data must not replace it.
  SCONCE_CHECK(found.problem.empty(), kCorruptPackage, found.problem);
  if (!change(found.journal)) return;
  make_folder(folder_.parent_path());
  make_folder(folder_);
  const Descriptor directory = open_folder(folder_);
  write_journal(directory, found.journal);
}

void StoredWeights::write(std::unique_ptr<WeightSetFile> set, Notes notes) {
  make_folder(folder_.parent_path());
  make_folder(folder_);
  const Descriptor directory = open_folder(folder_);
  const std::string where = folder_.string();
  Journal journal = find().journal;
  std::vector<StoredSet>& sets = journal.sets;

  SCONCE_CHECK(set->info().missing.empty(), kFailedPrecondition, "the set is not complete: constant '",
               set->info().missing, "' has no value");
  StoredSet next{set->info().weight_version,
                 set->info().label,
                 set->digest(),
                 {},
                 0,
                 {},
                 time_text(std::chrono::system_clock::now()),
                 std::move(notes.by)};
  next.file = file_of(next.digest);
  const auto same =
      std::find_if(sets.begin(), sets.end(), [&](const StoredSet& stored) { return stored.digest == next.digest; });
  if (same != sets.end() && !is_damaged(next.digest) && has_size(directory.get(), same->file, same->bytes) &&
      same->sha256.empty() != seal_.on()) {
    next.bytes = same->bytes;
    next.sha256 = same->sha256;
  } else {
    write_file(std::move(set), directory, next);
  }
  journal.guard = sets.empty() || sets.front().digest != next.digest ? std::move(notes.guard) : std::nullopt;
  if (notes.push) {
    notes.push->stored = true;
    journal.note(std::move(*notes.push));
  }
  std::erase_if(sets, [&](const StoredSet& stored) { return stored.digest == next.digest; });
  const uint64_t weight_version = next.weight_version;
  sets.insert(sets.begin(), std::move(next));
  if (sets.size() > kMaxStoredSets) sets.resize(kMaxStoredSets);

  // The current journal also gets the name of the previous one, unless it is damaged.
  if (succeeds([&] { read(kJournal); })) {
    SCONCE_CHECK(::unlinkat(directory.get(), kBefore, 0) == 0 || errno == ENOENT, kIo, "cannot remove ", where, "/",
                 kBefore, ": ", system_reason());
    SCONCE_CHECK(::linkat(directory.get(), kJournal, directory.get(), kBefore, 0) == 0, kIo, "cannot link ", where, "/",
                 kBefore, ": ", system_reason());
  }
  write_journal(directory, journal);
  revision_.fetch_add(1);
  report(weight_version, {});
  succeeds([&] { remove_others(sets); });
}

void StoredWeights::write_file(std::unique_ptr<WeightSetFile> set, const Descriptor& directory, StoredSet& next) {
  SafetensorsEncoder encoder(std::move(set));
  next.bytes = encoder.bytes();
  DurableFile file(directory.get(), folder_.string(), next.file);
  std::optional<Sha256> digest;
  if (seal_.on()) digest.emplace();
  const auto scratch = std::make_unique<std::byte[]>(kCopyBlock);
  for (;;) {
    const std::span<const std::byte> piece = encoder.next({scratch.get(), kCopyBlock});
    if (piece.empty()) break;
    if (digest) digest->update(piece);
    file.write(piece);
  }
  file.keep();
  if (digest) next.sha256 = to_hex(digest->finish());
  const MutexLock lock(mutex_);
  damaged_.erase(next.digest);
}

void StoredWeights::remove_others(const std::vector<StoredSet>& stored) const {
  std::set<std::string> names{kJournal, kBefore};
  for (const StoredSet& set : stored) names.insert(set.file);
  // If the journal becomes damaged, the previous journal replaces it, so its set must stay.
  succeeds([&] {
    if (const Journal before = read(kBefore); !before.sets.empty()) names.insert(before.sets.front().file);
  });
  const Descriptor directory = open_folder(folder_);
  std::error_code ignored;  // a later call removes the remaining files
  for (const std::string& name : names_in(folder_, ignored)) {
    const bool ours = name.ends_with(".safetensors") || name.ends_with(DurableFile::kUnfinished);
    if (ours && !names.contains(name)) ::unlinkat(directory.get(), name.c_str(), 0);
  }
}

bool StoredWeights::is_damaged(const std::string& digest) const {
  const MutexLock lock(mutex_);
  return damaged_.contains(digest);
}

void StoredWeights::damaged(const StoredSet& set) {
  const MutexLock lock(mutex_);
  damaged_.insert(set.digest);
}

StoredWeights::Status StoredWeights::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

void StoredWeights::note(std::string problem) {
  count_failure();
  const MutexLock lock(mutex_);
  status_.problem = std::move(problem);
}

void StoredWeights::report(uint64_t weight_version, std::string problem) {
  const MutexLock lock(mutex_);
  status_ = {weight_version, std::move(problem)};
}

WeightStore::WeightStore(const std::string& directory, const std::string& seal_key)
    : directory_(directory), seal_(seal_key) {
  if (directory.empty()) return;
  const std::string said = problem_of([&] {
    make_folder(fs::absolute(directory_));
    const Descriptor folder = open_folder(directory_);
    lock_ = Descriptor(::openat(folder.get(), kLock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    SCONCE_CHECK(lock_.get() >= 0, kIo, "cannot open ", directory, "/", kLock, ": ", system_reason());
  });
  SCONCE_CHECK(said.empty(), kInvalidArgument, "setting weights_store: ", said);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    SCONCE_CHECK(errno == EWOULDBLOCK, kIo, "setting weights_store: cannot lock ", directory, "/", kLock, ": ",
                 system_reason());
    char text[128] = {};
    const ssize_t count = ::pread(lock_.get(), text, sizeof text - 1, 0);
    const std::string who(text, static_cast<size_t>(std::max<ssize_t>(count, 0)));
    SCONCE_FAIL(kInvalidArgument, "setting weights_store: another server keeps its weights in ", directory,
                who.empty() ? "" : ": ", printable(who));
  }
  char host[65] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string self = fmt::format("process {} of {}", ::getpid(), host);
  // The text is only for another server's error message, so a full disk does not matter.
  if (::ftruncate(lock_.get(), 0) == 0) (void)!::pwrite(lock_.get(), self.data(), self.size(), 0);
}

std::shared_ptr<StoredWeights> WeightStore::of(const std::string& model, int64_t version) {
  if (directory_.empty()) return nullptr;
  const MutexLock lock(mutex_);
  auto& stored = models_[{model, version}];
  const std::string number = std::to_string(version);
  if (!stored) stored = std::make_shared<StoredWeights>(directory_ / model / number, model + "/" + number, seal_);
  return stored;
}

}  // namespace sconce::server::weights
