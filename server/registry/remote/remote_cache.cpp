#include "server/registry/remote/remote_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "package_format/files/directory.h"
#include "package_format/text/json_value.h"
#include "sconce/check.h"
#include "server/registry/remote/file_digest.h"
#include "server/registry/remote/folder_walk.h"
#include "server/registry/remote/range_journal.h"
#include "server/support/failure.h"
#include "server/support/json_document.h"
#include "server/weights/store/durable_file.h"
#include "src/support/hex.h"
#include "src/support/sha256.h"

namespace sconce::server::registry {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".lock";  // suffix after the name of a mirror
constexpr size_t kLongestStart = 200;   // of a name that gets a suffix
constexpr const char* kRooms[] = {"objects", "known", "partial", "mirrors"};

void make_folder(const fs::path& folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  SCONCE_CHECK(!problem, kIo, "cannot make the folder ", folder.native(), ": ", problem.message());
}

Descriptor open_lock(const fs::path& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  SCONCE_CHECK(file.get() >= 0, kIo, "cannot write ", path.native(), ": ", weights::system_reason());
  return file;
}

// Locked until the descriptor is destroyed; other processes wait.
Descriptor lock_folder(const fs::path& folder) {
  Descriptor file = open_lock(folder / "lock");
  int done = 0;
  do {
    done = ::flock(file.get(), LOCK_EX);
  } while (done != 0 && errno == EINTR);
  SCONCE_CHECK(done == 0, kIo, "cannot lock ", (folder / "lock").native(), ": ", weights::system_reason());
  return file;
}

// Whether a process holds a lock file.
bool is_held(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0;
}

struct Seen {
  fs::path path;
  uint64_t inode = 0, bytes = 0;
  int64_t used = 0;  // time of last use, in nanoseconds
};

std::vector<Seen> files_in(const fs::path& folder) {
  std::vector<Seen> seen;
  for (const Below& below : all_below(folder)) {
    if (!S_ISREG(below.status.st_mode)) continue;
    const timespec used = below.status.st_atim;
    seen.push_back({below.path, below.status.st_ino, static_cast<uint64_t>(below.status.st_blocks) * 512,
                    int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec});
  }
  return seen;
}

void by_last_use(std::vector<Seen>& files) {
  std::sort(files.begin(), files.end(), [](const Seen& a, const Seen& b) { return a.used < b.used; });
}

uint64_t sum_of(const std::vector<Seen>& files) {
  uint64_t sum = 0;
  for (const Seen& file : files) sum += file.bytes;
  return sum;
}

bool is_there(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// Sets the access time, because the kernel's may be a day old. The modification time stays, because it distinguishes
// packages.
void note_use(const fs::path& path) {
  const timespec times[] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

bool same_file(const fs::path& a, const fs::path& b) {
  struct stat one {
  }, other{};
  return ::lstat(a.c_str(), &one) == 0 && ::lstat(b.c_str(), &other) == 0 && one.st_ino == other.st_ino &&
         one.st_dev == other.st_dev;
}

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// A download that never started leaves no file.
struct RemoveIfEmpty {
  const fs::path& part;
  const Descriptor& held;
  ~RemoveIfEmpty() {
    struct stat named {
    }, own{};
    // The name may belong to another process's download by now.
    const bool is_own = ::lstat(part.c_str(), &named) == 0 && ::fstat(held.get(), &own) == 0 &&
                        named.st_ino == own.st_ino && named.st_dev == own.st_dev;
    if (is_own && own.st_size == 0) ::unlink(part.c_str());
  }
};

Sha256Digest digest_from(const std::string& hex) {
  Sha256Digest digest;
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::byte>(digit(hex[2 * i]) * 16 + digit(hex[2 * i + 1]));
  return digest;
}

}  // namespace

void place_file(const fs::path& file, const fs::path& place) {
  if (same_file(file, place)) return;
  // A name may have the maximum length of the file system.
  const fs::path fresh = place.parent_path() / ("." + place.filename().native().substr(0, kLongestStart) + ".new");
  ::unlink(fresh.c_str());
  if (::link(file.c_str(), fresh.c_str()) != 0) {
    SCONCE_CHECK(errno == EXDEV || errno == EPERM || errno == EMLINK || errno == EOPNOTSUPP, kIo, "cannot write ",
                 place.native(), ": ", weights::system_reason());
    std::error_code problem;
    fs::copy_file(file, fresh, problem);
    if (problem) ::unlink(fresh.c_str());
    SCONCE_CHECK(!problem, kIo, "cannot write ", place.native(), ": ", problem.message());
  }
  if (::rename(fresh.c_str(), place.c_str()) == 0) return;
  const std::string reason = weights::system_reason();
  ::unlink(fresh.c_str());
  SCONCE_FAIL(kIo, "cannot write ", place.native(), ": ", reason);
}

RemoteCache::RemoteCache(const fs::path& folder, uint64_t most_bytes, FreeBytes free)
    : folder_(folder.empty() ? default_folder() : fs::absolute(folder)), most_bytes_(most_bytes), free_(free) {
  std::error_code problem;
  // Files that were downloaded with credentials are only for the owner.
  if (fs::create_directories(folder_, problem)) fs::permissions(folder_, fs::perms::owner_all, problem);
  for (const char* room : kRooms) make_folder(folder_ / room);
}

fs::path RemoteCache::default_folder() {
  const char* const base = std::getenv("XDG_CACHE_HOME");
  if (base && base[0] == '/') return fs::path(base) / "sconce";
  const char* const home = std::getenv("HOME");
  SCONCE_CHECK(home && home[0] == '/', kInvalidArgument,
               "no folder for a cache of remote files: HOME is not set; name one (remote_cache, --cache)");
  return fs::path(home) / ".cache" / "sconce";
}

// Waits until no other process downloads this file.
Descriptor RemoteCache::hold(const fs::path& part, const std::atomic<bool>* stop) const {
  for (;;) {
    Descriptor file = open_lock(part);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      struct stat held {
      }, named{};
      // The previous holder may have renamed it meanwhile.
      if (::fstat(file.get(), &held) == 0 && ::lstat(part.c_str(), &named) == 0 && held.st_ino == named.st_ino)
        return file;
      continue;
    }
    SCONCE_CHECK(!stop || !stop->load(), kCancelled, "cancelled");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

bool RemoteCache::read_known(const std::string& key, Known& known) const {
  std::ifstream file(at("known", key), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const OrderedJson read = OrderedJson::parse(text, nullptr, false);
  return read.is_object() && succeeds([&] {
           known = {read.at("url").get<std::string>(), read.at("validator").get<std::string>(),
                    read.at("digest").get<std::string>(), read.at("boot").get<std::string>()};
         }) &&
         is_digest(known.digest);
}

void RemoteCache::write_known(const std::string& key, const Known& known) const {
  const fs::path path = at("known", key), fresh = at("known", key + ".new");
  {
    std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
    file << dump(OrderedJson{
                {"url", known.url}, {"validator", known.validator}, {"digest", known.digest}, {"boot", known.boot}})
         << "\n";
    file.flush();
    SCONCE_CHECK(file.good(), kIo, "cannot write ", fresh.native());
  }
  SCONCE_CHECK(::rename(fresh.c_str(), path.c_str()) == 0, kIo, "cannot write ", path.native(), ": ",
               weights::system_reason());
}

// Whether the object exists and matches its digest.
bool RemoteCache::is_whole(const std::string& key, Known& known) const {
  const fs::path object = at("objects", known.digest);
  if (!is_there(object)) return false;
  if (known.boot.empty() || known.boot == boot_id()) return true;
  const Descriptor file(::open(object.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0 || to_hex(digest_of_file(file.get(), object.native())) != known.digest) {
    const Descriptor lock = lock_folder(folder_);
    ::unlink(object.c_str());
    return false;
  }
  known.boot.clear();  // it was read from disk
  const Descriptor lock = lock_folder(folder_);
  write_known(key, known);
  return true;
}

// False: it was removed meanwhile.
bool RemoteCache::give(const Known& known, const fs::path& place, Obtained& obtained) const {
  const Descriptor lock = lock_folder(folder_);
  const fs::path object = at("objects", known.digest);
  if (!is_there(object)) return false;
  note_use(object);
  if (!place.empty()) place_file(object, place);
  obtained.path = place.empty() ? object : place;
  obtained.digest = digest_from(known.digest);
  obtained.bytes = fs::file_size(object);
  return true;
}

RemoteCache::Obtained RemoteCache::obtain(const RemoteUrl& url, const RemoteAccess& access, const std::string& listed,
                                          const fs::path& place, DownloadOptions options) {
  const std::string key = to_hex(sha256_of(url.key()));
  const fs::path part = at("partial", key);
  Obtained obtained;
  Known known;
  const auto find = [&](bool asked) {
    return read_known(key, known) && (asked || http::without_quotes(known.validator) == http::without_quotes(listed)) &&
           is_whole(key, known);
  };
  if (!listed.empty() && find(false) && give(known, place, obtained)) return obtained;
  const Descriptor held = hold(part, options.transfer.stop);
  const RemoveIfEmpty tidy{part, held};
  if (!listed.empty() && find(false) && give(known, place, obtained)) return obtained;
  options.known = find(true) ? known.validator : "";
  options.make_room = [this](uint64_t bytes) { make_room(bytes); };
  if (most_bytes_ > 0) options.most_bytes = std::min(options.most_bytes, most_bytes_);
  const RemoteRequest request = request_for(url, access);
  Downloaded came = download(request, part.native(), url.shown(), options);
  if (came.unchanged && give(known, place, obtained)) return obtained;
  if (came.unchanged) {
    options.known.clear();
    came = download(request, part.native(), url.shown(), options);
  }
  const fs::path journal = part.native() + ".journal";
  known = {url.shown(), came.validator, to_hex(came.digest), boot_id()};
  const bool is_the_hubs = url.scheme == RemoteScheme::kHub && is_digest(came.validator);
  if (is_the_hubs && came.validator != known.digest) {
    ::unlink(part.c_str());
    ::unlink(journal.c_str());
    SCONCE_FAIL(kCorruptPackage, url.shown(), ": its bytes have the digest ", known.digest, ", and the hub says ",
                came.validator);
  }
  {
    const Descriptor lock = lock_folder(folder_);
    const fs::path object = at("objects", known.digest);
    ::chmod(part.c_str(), 0444);
    SCONCE_CHECK(::rename(part.c_str(), object.c_str()) == 0, kIo, "cannot write ", object.native(), ": ",
                 weights::system_reason());
    ::unlink(journal.c_str());
    write_known(key, known);
    note_use(object);
    if (!place.empty()) place_file(object, place);
    obtained = {place.empty() ? object : place, came.digest, came.bytes, true};
  }
  return obtained;
}

std::string RemoteCache::validator_of(const RemoteUrl& url) const {
  Known known;
  return read_known(to_hex(sha256_of(url.key())), known) ? known.validator : "";
}

std::vector<RemoteFile> RemoteCache::known_below(const RemoteUrl& prefix) const {
  const std::string begin = prefix.shown() + "/";
  std::vector<RemoteFile> files;
  std::error_code problem;
  for (const std::string& key : names_in(folder_ / "known", problem)) {
    Known known;
    struct stat status {};
    if (!is_digest(key) || !read_known(key, known) || !known.url.starts_with(begin)) continue;
    if (::lstat(at("objects", known.digest).c_str(), &status) != 0) continue;
    files.push_back({known.url.substr(begin.size()), static_cast<uint64_t>(status.st_size), known.validator});
  }
  return files;
}

fs::path RemoteCache::mirror(const RemoteUrl& url, const std::string& name) {
  const std::string key = to_hex(sha256_of(url.key() + "\n" + name));
  Descriptor lock = open_lock(at("mirrors", key + kLock));
  // A process that makes room holds it briefly.
  while (::flock(lock.get(), LOCK_SH) != 0)
    SCONCE_CHECK(errno == EINTR, kIo, "cannot lock ", at("mirrors", key + kLock).native(), ": ",
                 weights::system_reason());
  mirrors_.push_back(std::move(lock));
  make_folder(at("mirrors", key));
  return at("mirrors", key);
}

uint64_t RemoteCache::bytes() const {
  return sum_of(files_in(folder_ / "objects")) + sum_of(files_in(folder_ / "partial"));
}

uint64_t RemoteCache::free_bytes(const fs::path& folder) {
  struct statvfs status {};
  return ::statvfs(folder.c_str(), &status) == 0 ? uint64_t{status.f_bavail} * status.f_frsize : UINT64_MAX;
}

// Unfinished downloads without a process.
template <class Fits>
void RemoteCache::remove_parts(Fits&& fits, uint64_t& used) const {
  std::vector<Seen> parts = files_in(folder_ / "partial");
  by_last_use(parts);
  for (const Seen& part : parts) {
    if (fits()) return;
    if (part.path.native().ends_with(".journal") || is_held(part.path)) continue;
    ::unlink(part.path.c_str());
    ::unlink((part.path.native() + ".journal").c_str());
    used -= part.bytes;
  }
}

void RemoteCache::make_room(uint64_t wanted) {
  if (most_bytes_ == 0 && wanted <= free_(folder_)) return;
  const Descriptor lock = lock_folder(folder_);
  uint64_t used = bytes();
  const auto fits = [&] {
    const bool within = most_bytes_ == 0 || (used <= most_bytes_ && wanted <= most_bytes_ - used);
    return within && wanted <= free_(folder_);
  };
  if (fits()) return;
  remove_parts(fits, used);
  if (fits()) return;
  std::set<uint64_t> served;                           // inodes
  std::map<uint64_t, std::vector<fs::path>> mirrored;  // links in folders that no process serves
  std::error_code problem;
  for (const std::string& name : names_in(folder_ / "mirrors", problem)) {
    if (name.ends_with(kLock)) continue;
    const bool in_use = is_held(at("mirrors", name + kLock));
    for (Seen& file : files_in(at("mirrors", name))) {
      if (in_use) {
        served.insert(file.inode);
      } else {
        mirrored[file.inode].push_back(std::move(file.path));
      }
    }
  }
  std::vector<Seen> objects = files_in(folder_ / "objects");
  std::erase_if(objects, [&](const Seen& object) { return served.contains(object.inode); });
  const uint64_t idle = sum_of(objects), in_use = used - std::min(used, idle);
  // Checked before evicting anything, because the size is the server's claim.
  SCONCE_CHECK(most_bytes_ == 0 || (in_use <= most_bytes_ && wanted <= most_bytes_ - in_use), kOutOfMemory,
               "the cache ", folder_.native(), " may have ", most_bytes_, " bytes, of which ", in_use,
               " are in use: no room for ", wanted);
  if (wanted > idle && wanted - idle > free_(folder_)) return;  // the write then reports the error
  by_last_use(objects);
  for (const Seen& object : objects) {
    if (fits()) return;
    ::unlink(object.path.c_str());
    for (const fs::path& link : mirrored[object.inode]) ::unlink(link.c_str());
    used -= object.bytes;
  }
}

}  // namespace sconce::server::registry
