// Files that are written, truncated and replaced while they are mapped.
#include "package_format/files/mapped_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "package_format/archive/archive_reader.h"
#include "sconce/error.h"
#include "sconce/mapped_files.h"
#include "tests/errors.h"
#include "tests/package_format/in_child.h"
#include "tests/package_format/raw_zip.h"
#include "tests/package_format/without_leases.h"

using namespace sconce;
using namespace sconce::testing;
using Means = WriteProtectedFile::Means;
namespace fs = std::filesystem;

namespace {

constexpr size_t kBytes = (3 << 20) + 123;

std::string content(size_t bytes = kBytes, int seed = 1) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i * 7 + i / 4096 + static_cast<size_t>(seed)) % 251);
  return text;
}

bool same(const MappedFile& file, const std::string& text) {
  const std::span<const std::byte> bytes = file.bytes();
  return bytes.size() == text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

struct Fd {
  int fd;
  Fd(const fs::path& path, int flags) : fd(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    REQUIRE_MESSAGE(fd >= 0, path.string() << ": " << std::strerror(errno));
  }
  ~Fd() { ::close(fd); }
};

void write_at(int fd, off_t at, const std::string& text) {
  REQUIRE(::pwrite(fd, text.data(), text.size(), at) == static_cast<ssize_t>(text.size()));
}

// What happens to files in place.
struct Change {
  const char* name;
  std::function<void(const fs::path&)> make;
};
const std::vector<Change> kInPlace = {
    {"cp over it",
     [](const fs::path& path) {
       const Fd file(path, O_WRONLY | O_TRUNC);
       write_at(file.fd, 0, content(kBytes, 2));
     }},
    {"truncate to nothing", [](const fs::path& path) { REQUIRE(::truncate(path.c_str(), 0) == 0); }},
    {"truncate to less", [](const fs::path& path) { REQUIRE(::truncate(path.c_str(), 100'000) == 0); }},
    {"write into it",
     [](const fs::path& path) {
       const Fd file(path, O_WRONLY);
       write_at(file.fd, 1 << 20, content(1 << 20, 3));
     }},
    {"write through a mapping",
     [](const fs::path& path) {
       const Fd file(path, O_RDWR);
       void* const data = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
       REQUIRE(data != MAP_FAILED);
       std::memset(data, 5, kBytes);
       ::munmap(data, kBytes);
     }},
    {"punch a hole",
     [](const fs::path& path) {
       const Fd file(path, O_RDWR);
       REQUIRE(::fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 20, 1 << 20) == 0);
     }},
};
const std::vector<Change> kAside = {
    {"rename another over it",
     [](const fs::path& path) {
       const fs::path next = path.parent_path() / "next";
       std::ofstream(next) << "next";
       fs::rename(next, path);
     }},
    {"unlink", [](const fs::path& path) { fs::remove(path); }},
    {"rename it", [](const fs::path& path) { fs::rename(path, path.parent_path() / "old"); }},
    {"link it", [](const fs::path& path) { fs::create_hard_link(path, path.parent_path() / "other"); }},
    {"take rights", [](const fs::path& path) { REQUIRE(::chmod(path.c_str(), 0444) == 0); }},
    {"open to read", [](const fs::path& path) { const Fd file(path, O_RDONLY); }},
};

// A folder on the file system of temporary files, on tmpfs, on overlayfs (below and above), on Btrfs.
struct Place {
  TempFolder folder;
  fs::path path, source;
  bool mounted = false;
  explicit Place(const std::string& kind) : path(folder.path()), source(folder.path()) {
    if (kind == "tmpfs") {
      std::string pattern = "/dev/shm/sconce-test-XXXXXX";
      if (::mkdtemp(pattern.data())) path = source = pattern;
    } else if (kind.starts_with("overlayfs")) {
      for (const char* name : {"lower", "upper", "work", "both"}) fs::create_directory(folder.path() / name);
      const std::string at = folder.path().string();
      const std::string options = "lowerdir=" + at + "/lower,upperdir=" + at + "/upper,workdir=" + at + "/work";
      mounted = ::mount("overlay", (at + "/both").c_str(), "overlay", 0, options.c_str()) == 0;
      if (!mounted) return;
      path = folder.path() / "both";
      source = kind == "overlayfs, lower" ? folder.path() / "lower" : path;
    } else if (kind == "btrfs") {
      const std::string image = folder.write("image", "").string(), at = (folder.path() / "mounted").string();
      fs::create_directory(at);
      const std::string make =
          "(mkfs.btrfs -q " + image + " && mount -o loop " + image + " " + at + ") >/dev/null 2>&1";
      mounted = ::truncate(image.c_str(), 160 << 20) == 0 && std::system(make.c_str()) == 0;
      path = source = at;
    }
  }
  ~Place() {
    if (mounted) ::umount2(path.c_str(), MNT_DETACH);
    if (path != folder.path() && !mounted) fs::remove_all(path);
  }
  fs::path file(const std::string& text) const {
    std::ofstream(source / "file", std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
    return path / "file";
  }
};
const std::vector<std::string> kPlaces = {"temporary files", "tmpfs", "overlayfs, lower", "overlayfs, upper"};

size_t entries(const char* folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++count;
  return count;
}

// A number of /proc/self/smaps, in bytes, of the mappings that overlap these.
size_t mapped(std::span<const std::byte> bytes, const std::string& key) {
  std::ifstream maps("/proc/self/smaps");
  const auto first = reinterpret_cast<uintptr_t>(bytes.data());
  size_t sum = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      inside = begin < first + bytes.size() && first < end;
    else if (inside && line.starts_with(key + ":"))
      sum += std::stoul(line.substr(key.size() + 1)) * 1024;
  }
  return sum;
}

std::string fault_of(const MappedFile& file) {
  return error_from(ErrorCode::kUnavailable, [&] { file.check(); });
}

// Touches every page.
size_t read_all(const MappedFile& file) {
  size_t sum = 0;
  for (const std::byte& byte : file.bytes()) sum += static_cast<size_t>(const_cast<const volatile std::byte&>(byte));
  return sum;
}

}  // namespace

TEST_CASE("mapped file: it stays in the page cache while nobody writes it") {
  const Place place("temporary files");
  const std::string text = content();
  const fs::path path = place.file(text);
  std::atomic<uint32_t> concern{0};
  const MappedFile file(path, concern), again(path, concern);
  CHECK(file.means() == Means::kLease);
  CHECK(same(file, text));
  CHECK(same(again, text));
  CHECK(concern == 0);
  CHECK(mapped(file.bytes(), "Rss") >= kBytes);
  CHECK(mapped(file.bytes(), "Shared_Clean") + mapped(file.bytes(), "Shared_Dirty") >= kBytes);
  CHECK(mapped(file.bytes(), "Private_Clean") + mapped(file.bytes(), "Private_Dirty") == 0);
  CHECK(mapped(file.bytes(), "Anonymous") == 0);
  file.give_up_pages(file.bytes());
  CHECK(mapped(file.bytes(), "Rss") < 8192);
  CHECK(same(file, text));
}

TEST_CASE("mapped file: who writes it in place waits until there is a copy") {
  for (const std::string& kind : kPlaces) {
    for (const Change& change : kInPlace) {
      CAPTURE(kind);
      CAPTURE(change.name);
      const Place place(kind);
      const std::string text = content();
      const fs::path path = place.file(text);
      std::atomic<uint32_t> concern{0};
      const MappedFile file(path, concern);
      CHECK(file.means() == Means::kLease);
      const std::byte* const address = file.bytes().data();
      change.make(path);
      CHECK(same(file, text));
      CHECK(file.bytes().data() == address);
      CHECK(fault_of(file) == "no error");
      CHECK(file.why_lost().empty());
      CHECK(concern == 0);
      // Its pages are its own now, and do not go.
      CHECK(mapped(file.bytes(), "Anonymous") >= kBytes);
      file.give_up_pages(file.bytes());
      CHECK(same(file, text));
      change.make(path);  // once more: nobody waits for anything
      CHECK(same(file, text));
    }
  }
}

TEST_CASE("mapped file: what happens beside its content costs nothing") {
  for (const std::string& kind : kPlaces) {
    for (const Change& change : kAside) {
      CAPTURE(kind);
      CAPTURE(change.name);
      const Place place(kind);
      const std::string text = content();
      const fs::path path = place.file(text);
      std::atomic<uint32_t> concern{0};
      const MappedFile file(path, concern);
      change.make(path);
      CHECK(same(file, text));
      CHECK(fault_of(file) == "no error");
      CHECK(concern == 0);
      // Rights taken of a lower file of an overlay copy it up, which opens nothing for writing here.
      CHECK(mapped(file.bytes(), "Anonymous") == 0);
    }
  }
}

TEST_CASE("mapped file: readers notice nothing of the copy") {
  const TempFolder folder;
  const std::string text = content((130 << 20) + 77);  // in several pieces
  const fs::path path = folder.write("large", text);
  std::atomic<uint32_t> concern{0};
  const MappedFile file(path, concern);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, rounds{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      while (!stop) {
        wrong += !same(file, text);
        ++rounds;
      }
    });
  REQUIRE(::truncate(path.c_str(), 0) == 0);
  { const Fd file_again(path, O_WRONLY | O_TRUNC); }
  for (const int before = rounds; rounds < before + 6;) std::this_thread::yield();
  stop = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
  CHECK(fault_of(file) == "no error");
}

TEST_CASE("mapped file: many of one process, and each writer waits for its own") {
  const TempFolder folder;
  std::atomic<uint32_t> concern{0};
  std::vector<std::string> texts;
  std::vector<MappedFile> files;
  for (int i = 0; i < 12; ++i) {
    texts.push_back(content(kBytes, i));
    files.emplace_back(folder.write(std::to_string(i), texts.back()), concern);
  }
  std::vector<std::thread> writers;
  for (int i = 0; i < 12; i += 2)
    writers.emplace_back([&, i] { ::truncate((folder.path() / std::to_string(i)).c_str(), 10); });
  for (std::thread& writer : writers) writer.join();
  for (size_t i = 0; i < files.size(); ++i) {
    CHECK(same(files[i], texts[i]));
    CHECK((mapped(files[i].bytes(), "Anonymous") > 0) == (i % 2 == 0));
  }
  CHECK(concern == 0);
}

TEST_CASE("mapped file: nothing is left of it") {
  const TempFolder folder;
  const fs::path path = folder.write("file", content());
  const size_t threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd");
  std::atomic<uint32_t> concern{0};
  for (int i = 0; i < 20; ++i) {
    const fs::path now = folder.write("file" + std::to_string(i), content());
    MappedFile file(now, concern);
    const MappedFile other(path, concern);
    CHECK(entries("/proc/self/task") == threads + 1);
    if (i % 3 == 0) REQUIRE(::truncate(now.c_str(), 0) == 0);
    // A writer that is let in while the file is closed.
    std::thread writer([&] { ::truncate(now.c_str(), 5); });
    if (i % 3 == 1) file = MappedFile();
    writer.join();
  }
  CHECK(entries("/proc/self/task") == threads);
  CHECK(entries("/proc/self/fd") == descriptors);
  const Fd writable(path, O_WRONLY);  // no lease is left
}

TEST_CASE("mapped file: small ones are copied") {
  const TempFolder folder;
  const fs::path path = folder.write("file", content(1000));
  std::atomic<uint32_t> concern{0};
  const MappedFile file(path, concern), empty(folder.write("empty", ""), concern);
  CHECK(file.means() == Means::kCopy);
  CHECK(empty.bytes().empty());
  REQUIRE(::truncate(path.c_str(), 0) == 0);
  file.give_up_pages(file.bytes());
  CHECK(same(file, content(1000)));
  CHECK(fault_of(file) == "no error");
}

TEST_CASE("mapped file: another user's, written in place") {
  guard_mapped_files();
  for (const Change& change : kInPlace) {
    CAPTURE(change.name);
    const Place place("tmpfs");
    const std::string text = content();
    const fs::path path = place.file(text);
    const WithoutLeases without(path);
    if (!without) return;  // only root has others to give files to
    std::atomic<uint32_t> concern{0};
    const MappedFile file(path, concern);
    REQUIRE(file.means() == Means::kStamp);
    CHECK(concern == 1);
    CHECK(same(file, text));
    CHECK(fault_of(file) == "no error");
    change.make(path);
    read_all(file);  // the process lives
    const std::string fault = fault_of(file);
    CHECK_MESSAGE(contains(fault, path.string()), fault);
    CHECK(contains(fault, "in place"));
    CHECK(file.why_lost() == fault);
    CHECK(read_all(file) == 0);
    CHECK(fault_of(file) == fault);
  }
}

TEST_CASE("mapped file: another user's, read where it ends now before anybody looked") {
  guard_mapped_files();
  const Place place("tmpfs");
  const fs::path path = place.file(content());
  const WithoutLeases without(path);
  if (!without) return;
  std::atomic<uint32_t> concern{0};
  const MappedFile file(path, concern);
  REQUIRE(::truncate(path.c_str(), 8192) == 0);
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) readers.emplace_back([&] { read_all(file); });
  for (std::thread& reader : readers) reader.join();
  CHECK(concern == 2);
  CHECK(contains(file.why_lost(), "truncated in place"));
  CHECK(contains(fault_of(file), path.string()));
}

TEST_CASE("mapped file: another user's, whose time was set back") {
  const Place place("tmpfs");
  const std::string text = content();
  const fs::path path = place.file(text);
  const WithoutLeases without(path);
  if (!without) return;
  std::atomic<uint32_t> concern{0};
  const MappedFile file(path, concern);
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  {
    const Fd writer(path, O_WRONLY);
    write_at(writer.fd, 77, "x");
    const timespec times[2] = {status.st_atim, status.st_mtim};
    REQUIRE(::futimens(writer.fd, times) == 0);
  }
  CHECK(contains(fault_of(file), "it was written to in place"));
}

TEST_CASE("mapped file: another user's, with changes beside its content") {
  for (const Change& change : kAside) {
    CAPTURE(change.name);
    const Place place("tmpfs");
    const std::string text = content();
    const fs::path path = place.file(text);
    const WithoutLeases without(path);
    if (!without) return;
    std::atomic<uint32_t> concern{0};
    const MappedFile file(path, concern);
    change.make(path);
    CHECK(same(file, text));
    CHECK(fault_of(file) == "no error");
    CHECK(mapped(file.bytes(), "Anonymous") == 0);
  }
}

TEST_CASE("mapped file: another user's, on a file system that shares blocks") {
  const Place place("btrfs");
  const std::string text = content();
  if (!place.mounted) return;  // no tools for it, or no right to mount
  for (const Change& change : kInPlace) {
    CAPTURE(change.name);
    const fs::path path = place.file(text);
    const WithoutLeases without(path);
    REQUIRE(without);
    std::atomic<uint32_t> concern{0};
    const MappedFile file(path, concern);
    CHECK(file.means() == Means::kClone);
    change.make(path);
    CHECK(same(file, text));
    file.give_up_pages(file.bytes());
    CHECK(same(file, text));
    CHECK(fault_of(file) == "no error");
    CHECK(concern == 0);
    CHECK(entries(place.path.c_str()) == 1);  // nothing is left beside it
  }
}

TEST_CASE("mapped file: one that somebody has open for writing is copied") {
  const TempFolder folder;
  const std::string text = content();
  const fs::path path = folder.write("file", text);
  const Fd writer(path, O_WRONLY);
  std::atomic<uint32_t> concern{0};
  const MappedFile file(path, concern);
  CHECK(file.means() == Means::kCopyOfWritten);
  write_at(writer.fd, 1000, content(5000, 9));
  CHECK(same(file, text));
  CHECK(fault_of(file) == "no error");
  CHECK(concern == 0);
}

TEST_CASE("mapped file: who writes for a moment only is waited for") {
  const TempFolder folder;
  const fs::path path = folder.write("file", content());
  std::atomic<bool> is_open{false};
  std::thread writer([&] {
    const Fd file(path, O_WRONLY);
    is_open = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    write_at(file.fd, 0, content(kBytes, 2));
  });
  while (!is_open) std::this_thread::yield();
  std::atomic<uint32_t> concern{0};
  const MappedFile file(path, concern);
  writer.join();
  CHECK(file.means() == Means::kLease);
  CHECK(same(file, content(kBytes, 2)));
}

TEST_CASE("archive reader: a package that is being written is refused where it is torn") {
  const TempFolder folder;
  const std::string weights = content(1 << 20);
  const std::string archive = build({{{"net/archive_format", "pt2"}, {"net/data/weights/w", weights}}});
  const fs::path path = folder.write("m.pt2", archive);
  const Fd writer(path, O_WRONLY);
  CHECK(ArchiveReader::open(path)->members().size() == 2);
  write_at(writer.fd, 500'000, "not what the checksum is of");
  CHECK(contains(error_from(ErrorCode::kCorruptPackage, [&] { ArchiveReader::open(path); }), "net/data/weights/w"));
  // Nothing tells of an unpacked one.
  folder.write("unpacked/archive_format", "pt2");
  const fs::path member = folder.write("unpacked/weights", weights);
  const Fd also(member, O_WRONLY);
  CHECK(contains(error_from(ErrorCode::kUnavailable, [&] { ArchiveReader::open(folder / "unpacked"); }),
                 "open for writing"));
}

TEST_CASE("archive reader: what was changed in place is said of the file it is about") {
  const Place place("tmpfs");
  const fs::path package = place.path / "package";
  fs::create_directories(package / "data");
  const fs::path two = package / "data/two";
  std::ofstream(package / "archive_format") << "pt2";
  std::ofstream(package / "data/one") << content();
  std::ofstream(two) << content();
  const WithoutLeases without(package);
  if (!without) return;
  const auto archive = ArchiveReader::open(package);
  CHECK(archive->concerned());
  archive->check_files();
  REQUIRE(::truncate(two.c_str(), 99'999) == 0);
  CHECK(archive->why_lost().empty());
  CHECK_THROWS_WITH_AS(archive->check_files(), doctest::Contains(two.c_str()), Error);
  CHECK(contains(archive->why_lost(), two.string()));
}

#ifndef __SANITIZE_THREAD__  // whose run time ends where it gets no memory
TEST_CASE("mapped file: without memory for a copy it is lost, and the process lives") {
  const TempFolder folder;
  const fs::path path = folder.write("file", content(40 << 20));
  const int status = in_child([&] {
    std::atomic<uint32_t> concern{0};
    const MappedFile file(path, concern);
    if (file.means() != Means::kLease) return 2;
    std::ifstream statm("/proc/self/statm");
    size_t pages = 0;
    statm >> pages;
    const rlimit limit{pages * 4096 + (8 << 20), RLIM_INFINITY};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return 3;
    static std::atomic<bool> told_lost{false};
    on_mapped_file_event([](const MappedFileEvent& event) noexcept { told_lost = event.lost != nullptr; });
    if (::truncate(path.c_str(), 0) != 0) return 4;
    if (concern == 0 || !told_lost) return 5;
    if (read_all(file) != 0) return 6;
    return contains(fault_of(file), "no memory to keep") && contains(fault_of(file), path.string()) ? 0 : 7;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

#endif

TEST_CASE("mapped file: the host is told of copies") {
  static std::atomic<uint64_t> copied{0};
  static std::atomic<int> times{0};
  on_mapped_file_event([](const MappedFileEvent& event) noexcept {
    copied = event.copied;
    times += event.lost == nullptr;
  });
  const TempFolder folder;
  const fs::path path = folder.write("file", content());
  std::atomic<uint32_t> concern{0};
  const MappedFile file(path, concern);
  REQUIRE(::truncate(path.c_str(), 0) == 0);
  on_mapped_file_event(nullptr);
  CHECK(copied == kBytes);
  CHECK(times == 1);
}
