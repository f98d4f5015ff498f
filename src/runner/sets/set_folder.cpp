#include "src/runner/sets/set_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "package_format/files/directory.h"
#include "sconce/check.h"
#include "sconce/tensor_files.h"
#include "sconce/weight_sources.h"
#include "src/aoti_abi/guard.h"
#include "src/runner/constants/staging.h"
#include "src/support/parse_number.h"
#include "src/types/write_error.h"

namespace sconce::runner {
namespace {

constexpr std::string_view kSuffix = ".safetensors";
constexpr const char *kLabel = "sconce_label", *kNote = "sconce_note", *kBase = "sconce_base",
                     *kDigest = "sconce_digest", *kVersion = "sconce_weight_version";
// Also written for one release, which may be followed by the one before.
constexpr const char* kFormerVersion = "sconce_generation";  // deprecated
constexpr size_t kDigits = 20;  // of any weight version, so that another one fits in its place
constexpr const char *kNew = ".new", *kWaiting = ".waiting", *kReplaced = ".replaced";

// The constants of a set that the package does not have; undefined where it has them.
ConstantSet beyond(const ConstantSet& set, const ConstantSet& packaged) {
  std::vector<Tensor> tensors = set.tensors();
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].defined() && packaged.tensors()[i].defined() &&
        tensors[i].storage() == packaged.tensors()[i].storage())
      tensors[i] = Tensor();
  return ConstantSet(std::move(tensors));
}

void to_disk(const std::filesystem::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  const bool good = fd >= 0 && ::fsync(fd) == 0;
  const int problem = errno;
  if (fd >= 0) ::close(fd);
  if (!good) throw Error(write_error_code(problem), "cannot write: " + path.string() + ": " + std::strerror(problem));
}

void rename_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  SCONCE_CHECK(::rename(from.c_str(), to.c_str()) == 0, kIo, "cannot write: ", to.string(), ": ", std::strerror(errno));
}

// The file's length less its header's, which its first eight bytes give; 0 for what cannot be.
uint64_t data_bytes(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  uint64_t header = 0;
  struct ::stat stat;
  const bool good = ::fstat(fd, &stat) == 0 && ::read(fd, &header, sizeof header) == sizeof header;
  ::close(fd);
  const uint64_t size = good ? static_cast<uint64_t>(stat.st_size) : 0;
  return good && header <= size - sizeof header ? size - sizeof header - header : 0;
}

std::string padded(uint64_t weight_version) {
  const std::string digits = std::to_string(weight_version);
  return std::string(kDigits - digits.size(), '0') + digits;
}

// Writes a weight version over that of a file which nobody reads, if it has one, and sees it on the disk.
void put_weight_version(const std::filesystem::path& path, uint64_t weight_version) {
  const auto metadata = read_safetensors_metadata(path);
  const auto is_there = [&](const char* name) {
    const auto found = metadata.find(name);
    return found != metadata.end() && found->second.size() == kDigits;
  };
  if (!is_there(kVersion) && !is_there(kFormerVersion)) return;
  struct Descriptor {
    int fd;
    ~Descriptor() {
      if (fd >= 0) ::close(fd);
    }
  } const file{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  const auto check = [&](bool good) {
    if (!good) throw Error(write_error_code(errno), "cannot write: " + path.string() + ": " + std::strerror(errno));
  };
  check(file.fd >= 0);
  uint64_t bytes = 0;
  check(::pread(file.fd, &bytes, sizeof bytes, 0) == sizeof bytes);
  std::string header(bytes, '\0');  // it was read before
  check(::pread(file.fd, header.data(), header.size(), sizeof bytes) == static_cast<ssize_t>(header.size()));
  const std::string digits = padded(weight_version);
  for (const char* const name : {kVersion, kFormerVersion}) {
    if (!is_there(name)) continue;
    size_t at = header.find('"' + std::string(name) + '"');
    if (at != std::string::npos) at = header.find(metadata.find(name)->second, at);
    SCONCE_CHECK(at != std::string::npos, kCorruptPackage, "not a named set's file: ", path.string());
    check(::pwrite(file.fd, digits.data(), digits.size(), static_cast<off_t>(sizeof bytes + at)) == kDigits);
  }
  check(::fdatasync(file.fd) == 0);
}

// Takes a file's values for constants of the table.
class Taker final : public WeightUpdate {
 public:
  explicit Taker(const ConstantTable& table) : table_(table) {}
  void declare(std::span<const WeightEntry> entries) override {
    staging_ = std::make_unique<Staging>(table_, entries, Staging::Rules{});
    staging_->allocate();
  }
  std::span<std::byte> memory(size_t entry) override { return staging_->memory(entry); }
  void complete(size_t entry) override { staging_->complete(entry); }
  void set_label(std::string /*label*/) override {}
  void finish() override {}
  std::shared_ptr<const ConstantSet> over(const ConstantSet& base) { return staging_->finish(base); }

 private:
  const ConstantTable& table_;
  std::unique_ptr<Staging> staging_;
};

}  // namespace

bool is_set_name(std::string_view name) noexcept {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !name.empty() && name.size() <= 64 && name[0] != '.' && std::all_of(name.begin(), name.end(), allowed);
}

SetFolder::SetFolder(std::filesystem::path folder, const ConstantTable& table,
                     std::shared_ptr<const ConstantSet> packaged)
    : folder_(std::move(folder)), table_(table), packaged_(std::move(packaged)) {
  std::error_code ec;
  std::filesystem::create_directories(folder_, ec);
  SCONCE_CHECK(!ec && ::access(folder_.c_str(), W_OK | X_OK) == 0, kIo,
               "cannot use the folder for named sets: ", folder_.string(), ": ",
               ec ? ec.message() : std::strerror(errno));
  // Removes what processes left that have ended.
  const auto left = [](const std::string& name) {
    return name.starts_with('.') &&
           (name.find(kNew) != std::string::npos || name.ends_with(kWaiting) || name.ends_with(kReplaced));
  };
  for (const std::string& name : names_in(folder_.string(), ec))
    if (left(name)) ::unlink((folder_ / name).c_str());
}

std::map<std::string, SetFolder::File, std::less<>> SetFolder::list() const {
  std::map<std::string, File, std::less<>> files;
  std::error_code ec;
  for (std::string& name : names_in(folder_.string(), ec)) {
    const std::filesystem::path path = folder_ / name;
    if (!name.ends_with(kSuffix)) continue;
    name.resize(name.size() - kSuffix.size());
    struct ::stat stat;
    if (!is_set_name(name) || ::stat(path.c_str(), &stat) != 0 || !S_ISREG(stat.st_mode)) continue;
    File file{data_bytes(path), std::chrono::system_clock::from_time_t(stat.st_mtim.tv_sec), {}, {}, 0};
    // What is wrong with the file shows when the set is asked for.
    if (aoti_abi::guard("listing named sets", [&] {
          const auto metadata = read_safetensors_metadata(path);
          if (const auto label = metadata.find(kLabel); label != metadata.end()) file.label = label->second;
          if (const auto note = metadata.find(kNote); note != metadata.end()) file.note = note->second;
          for (const char* const version : {kFormerVersion, kVersion})
            if (const auto number = metadata.find(version); number != metadata.end())
              file.weight_version = parse_number<uint64_t>(number->second).value_or(0);
        }) != 0)
      aoti_abi::take_error();
    files.emplace(std::move(name), std::move(file));
  }
  return files;
}

uint64_t SetFolder::write(const std::string& name, const Words& words, uint64_t weight_version, const ConstantSet& set,
                          Place place) const {
  const ConstantSet added = beyond(set, *packaged_);
  std::map<std::string_view, NamedTensor> by_name;  // constants of one name have one value
  for (size_t i = 0; i < added.tensors().size(); ++i) {
    const Tensor& tensor = added.tensors()[i];
    if (!tensor.defined()) continue;
    const std::string_view public_name = table_.stored()[i].public_name();
    by_name.try_emplace(public_name, NamedTensor{std::string(public_name), on_host(tensor)});
  }
  std::vector<NamedTensor> tensors;
  for (auto& [text, tensor] : by_name) tensors.push_back(std::move(tensor));
  struct Temporary {
    std::filesystem::path path;
    ~Temporary() { ::unlink(path.c_str()); }
  } const temporary{beside(name, kNew)};
  write_safetensors(temporary.path, tensors,
                    {{kLabel, words.label},
                     {kNote, words.note},
                     {kVersion, padded(weight_version)},
                     {kFormerVersion, padded(weight_version)},
                     {kBase, packaged_->digest(table_)},
                     {kDigest, added.digest(table_)}});
  to_disk(temporary.path, O_RDONLY);
  rename_file(temporary.path, place == Place::kNamed ? path_of(name) : beside(name, kWaiting));
  write_names();
  uint64_t bytes = 0;
  for (const NamedTensor& tensor : tensors) bytes += tensor.tensor.bytes();
  return bytes;
}

void SetFolder::write_names() const { to_disk(folder_, O_RDONLY | O_DIRECTORY); }

void SetFolder::publish(const std::string& name) const {
  const std::filesystem::path path = path_of(name), replaced = beside(name, kReplaced);
  ::unlink(replaced.c_str());
  errno = 0;
  SCONCE_CHECK(::link(path.c_str(), replaced.c_str()) == 0 || errno == ENOENT, kIo,
               "cannot keep the set that is replaced: ", replaced.string(), ": ", std::strerror(errno));
  const bool was_there = errno != ENOENT;
  const std::filesystem::path waiting = beside(name, kWaiting);
  rename_file(waiting, path);
  struct Undo {
    const std::filesystem::path &path, &waiting, &replaced;
    bool was_there, done = false;
    ~Undo() {
      if (done) return;
      ::rename(path.c_str(), waiting.c_str());
      if (was_there) ::rename(replaced.c_str(), path.c_str());
    }
  } undo{path, waiting, replaced, was_there};
  write_names();
  undo.done = true;
}

void SetFolder::restore(const std::string& name, bool was_there, uint64_t weight_version) const {
  const std::filesystem::path path = path_of(name), replaced = beside(name, kReplaced);
  if (was_there) put_weight_version(replaced, weight_version);
  if (was_there)
    rename_file(replaced, path);
  else
    SCONCE_CHECK(::unlink(path.c_str()) == 0 || errno == ENOENT, kIo, "cannot remove: ", path.string(), ": ",
                 std::strerror(errno));
  write_names();
}

SetFolder::Content SetFolder::read(const std::string& name) const {
  const std::filesystem::path path = path_of(name);
  const std::map<std::string, std::string> metadata = read_safetensors_metadata(path);
  const auto text = [&](const char* key) {
    const auto found = metadata.find(key);
    SCONCE_CHECK(found != metadata.end(), kCorruptPackage, "not a named set's file: ", path.string());
    return found->second;
  };
  SCONCE_CHECK(text(kBase) == packaged_->digest(table_), kFailedPrecondition, "set '", name,
               "' was made for a package with other weights: ", path.string());
  Taker taker(table_);
  stage_file(taker, path, {.format = WeightFormat::kSafetensors});
  std::shared_ptr<const ConstantSet> set = taker.over(*packaged_);
  SCONCE_CHECK(text(kDigest) == beyond(*set, *packaged_).digest(table_), kCorruptPackage, "the file of set '", name,
               "' is damaged: ", path.string());
  const auto note = metadata.find(kNote);
  return {{text(kLabel), note != metadata.end() ? note->second : std::string()}, std::move(set)};
}

void SetFolder::remove(const std::string& name) const noexcept { ::unlink(path_of(name).c_str()); }
void SetFolder::drop_waiting(const std::string& name) const noexcept { ::unlink(beside(name, kWaiting).c_str()); }
void SetFolder::drop_replaced(const std::string& name) const noexcept { ::unlink(beside(name, kReplaced).c_str()); }

}  // namespace sconce::runner
