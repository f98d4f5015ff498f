#include "src/loader/library/shared_library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>

#include "package_format/elf_image.h"
#include "tests/errors.h"
#include "tests/loader/sample_file.h"

using namespace sconce;
using namespace sconce::loader;

namespace {

size_t mappings(const std::string& of) {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(of) != std::string::npos;
  return count;
}

size_t open_files() {
  size_t count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory)) ++count;
  closedir(directory);
  return count;
}

std::string message_of(std::span<const std::byte> image, ErrorCode expected, std::span<const ByteRange> holes = {}) {
  return error_from(expected, [&] { SharedLibrary::load(ElfImage(image, "model"), holes); });
}

ByteRange weights_of(const std::vector<std::byte>& bytes) {
  const ElfImage image(bytes, "model");
  const uint64_t begin = image.symbol(image.find_symbol("_binary_constants_bin_start")).st_value;
  const uint64_t end = image.symbol(image.find_symbol("_binary_constants_bin_end")).st_value;
  return {image.offset_of(begin, end - begin, "weights"), end - begin};
}

// Makes the calling process unable to create memfds and, if asked, unnamed files.
void refuse_files(bool unnamed) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, static_cast<uint32_t>(unnamed ? O_TMPFILE & ~O_DIRECTORY : 0), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(77);
}

// Runs the function in a child process, which exits with its result.
template <class F>
int in_child(F&& body) {
  const pid_t child = fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    std::_Exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("shared library: loads without libtorch and finds what it exports, nothing else") {
  const std::vector<std::byte> bytes = sample("sample_model");
  const SharedLibrary library = SharedLibrary::load(ElfImage(bytes, "loads-without-libtorch"));
  CHECK(library.backing() == "memory");
  CHECK(mappings("memfd:loads-without-libtorch") > 2);
  CHECK(library.function<int(const char*)>("sample_matches")("cuda:1") == 1);
  CHECK(library.function<int()>("sample_weak")() == 0);
  CHECK(library.function<long(const char*)>("sample_binary")("0b101") == 5);  // from libsconce
  CHECK(library.find("sample_unique") != nullptr);
  CHECK(library.find("malloc") == nullptr);           // imported only
  CHECK(library.find("__isoc23_strtol") == nullptr);  // libsconce exports it
  CHECK_THROWS_WITH_AS(library.function<void()>("sample_none"),
                       "model code: loads-without-libtorch does not export sample_none", Error);
  CHECK(dlsym(RTLD_DEFAULT, "sample_unique") == nullptr);
  CHECK_THROWS_AS(library.function<void(const char*)>("sample_throw")("text"), std::runtime_error);
}

TEST_CASE("shared library: of a file that changes after it was checked, the dynamic linker sees the tables that were") {
  std::vector<std::byte> bytes = sample("sample_model");
  const ElfImage image(bytes, "changed-tables");
  for (const ByteRange& table : image.tables())
    std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(table.offset), table.size, std::byte{0xff});
  const SharedLibrary library = SharedLibrary::load(image);
  CHECK(library.function<int(const char*)>("sample_matches")("cuda:1") == 1);
}

TEST_CASE("shared library: nothing runs of a copy that its file's owner calls no good") {
  const std::vector<std::byte> bytes = sample("sample_model");
  const size_t before = open_files();
  const auto no_good = [] { SCONCE_FAIL(kUnavailable, "written to meanwhile"); };
  CHECK_THROWS_WITH_AS(SharedLibrary::load(ElfImage(bytes, "no-good"), {}, false, no_good), "written to meanwhile",
                       Error);
  CHECK(mappings("memfd:no-good") == 0);
  CHECK(open_files() == before);
}

TEST_CASE("shared library: an initialiser that throws leaves the dynamic linker to others") {
  const std::vector<std::byte> bytes = sample("sample_throws");
  const size_t before = open_files();
  setenv("SAMPLE_THROWS", "1", 1);
  CHECK_THROWS_AS(SharedLibrary::load(ElfImage(bytes, "throws")), std::bad_alloc);
  unsetenv("SAMPLE_THROWS");
  CHECK(mappings("memfd:throws") == 0);
  CHECK(open_files() == before);
  std::thread([&] {  // would wait for ever if the lock were still held
    const SharedLibrary library = SharedLibrary::load(ElfImage(bytes, "throws-no-more"));
    CHECK(library.function<int()>("sample_initialised")() == 2);
  })
      .join();
}

TEST_CASE("shared library: a size of a table of initialisers that is nowhere runs nothing") {
  std::vector<std::byte> bytes = sample("sample_throws");
  const ElfImage image(bytes, "model");
  for (size_t i = 0; i < image.dynamic().size(); ++i) {
    if (image.dynamic()[i].d_tag != DT_INIT_ARRAY) continue;
    const Elf64_Dyn nothing{DT_DEBUG, {0}};
    std::memcpy(bytes.data() + image.dynamic_offset() + i * sizeof(Elf64_Dyn), &nothing, sizeof nothing);
  }
  const SharedLibrary library = SharedLibrary::load(ElfImage(bytes, "no-initialisers"));
  CHECK(library.function<int()>("sample_initialised")() == 0);
}

TEST_CASE("shared library: two of one image share nothing") {
  const std::vector<std::byte> bytes = sample("sample_model");
  const SharedLibrary a = SharedLibrary::load(ElfImage(bytes, "model")),
                      b = SharedLibrary::load(ElfImage(bytes, "model"));
  CHECK(a.find("sample_unique") != b.find("sample_unique"));
  CHECK(a.function<int()>("sample_unique")() == 1);
  CHECK(a.function<int()>("sample_unique")() == 2);
  CHECK(b.function<int()>("sample_unique")() == 1);
}

TEST_CASE("shared library: every way of linking loads") {
  for (const char* name :
       {"sample_now", "sample_torchless", "sample_shared_tail", "sample_new_glibc", "sample_no_room"}) {
    CAPTURE(name);
    const std::vector<std::byte> bytes = sample(name);
    const SharedLibrary library = SharedLibrary::load(ElfImage(bytes, name));
    CHECK(library.function<long(const char*)>("sample_binary")("-0b11") == -3);
  }
}

TEST_CASE("shared library: unloads completely, a thousand times") {
  const std::vector<std::byte> bytes = sample("sample_model");
  size_t files = 0, heap = 0, module_id = 0;
  int destroyed = 0, unloaded = 0;
  constexpr int kWarmUp = 50, kCycles = 1000;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    if (cycle == kWarmUp) {
      files = open_files();
      heap = mallinfo2().uordblks;
    }
    const SharedLibrary library = SharedLibrary::load(ElfImage(bytes, "thousand-times"));
    const std::string text(100, static_cast<char>('a' + cycle % 26));
    CHECK(library.function<const char*(const char*, int*)>("sample_text")(text.c_str(), &destroyed) == text);
    CHECK(library.function<int()>("sample_unique")() == 1);
    CHECK(library.function<int(const char*)>("sample_matches")("cuda") == 1);
    library.function<void(int*)>("sample_count_unload")(&unloaded);
    // The dynamic linker reuses the number of an unloaded module with thread-local storage.
    size_t id = 0;
    Dl_info info;
    REQUIRE(dladdr(library.find("sample_unique"), &info));
    void* handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(handle);
    REQUIRE(dlinfo(handle, RTLD_DI_TLS_MODID, &id) == 0);
    dlclose(handle);
    if (cycle == 0) module_id = id;
    CHECK(id == module_id);
  }
  CHECK(destroyed == kCycles);
  CHECK(unloaded == kCycles);
  CHECK(mappings("thousand-times") == 0);
  CHECK(open_files() == files);
  CHECK(mallinfo2().uordblks <= heap + 16 * 1024);
}

TEST_CASE("shared library: threads that called it and live on do not keep it") {
  const std::vector<std::byte> bytes = sample("sample_model");
  std::atomic<int> waiting{0};
  int destroyed[4] = {};
  std::promise<void> unloaded;
  std::shared_future<void> may_end = unloaded.get_future().share();
  std::vector<std::thread> threads;
  {
    const SharedLibrary library = SharedLibrary::load(ElfImage(bytes, "threads-live-on"));
    const SharedLibrary other = SharedLibrary::load(ElfImage(bytes, "threads-live-on-too"));
    auto* text = library.function<const char*(const char*, int*)>("sample_text");
    auto* other_text = other.function<const char*(const char*, int*)>("sample_text");
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        text("long enough for the heap: 0123456789012345678901234567890", &destroyed[t]);
        other_text("", nullptr);
        text("again", &destroyed[t]);
        ++waiting;
        may_end.wait();
      });
    while (waiting < 3) std::this_thread::yield();
    // A thread that ends before the library is unloaded destroys its own object.
    std::thread([&] { text("x", &destroyed[3]); }).join();
    CHECK(destroyed[3] == 1);
    CHECK(destroyed[0] == 0);
  }
  CHECK(mappings("threads-live-on") == 0);
  for (int count : destroyed) CHECK(count == 1);
  unloaded.set_value();
  for (std::thread& thread : threads) thread.join();
  for (int count : destroyed) CHECK(count == 1);
}

TEST_CASE("shared library: one that asks to stay keeps its descriptor, so that its path is not given again") {
  const std::vector<std::byte> bytes = sample("sample_stays"), other = sample("sample_model");
  const size_t files = open_files();
  { const SharedLibrary library = SharedLibrary::load(ElfImage(bytes, "asks-to-stay")); }
  CHECK(mappings("asks-to-stay") > 0);
  CHECK(open_files() == files + 1);
  const SharedLibrary next = SharedLibrary::load(ElfImage(other, "next"));
  CHECK(mappings("memfd:next") > 0);
}

TEST_CASE("shared library: holes are not copied") {
  const std::vector<std::byte> bytes = sample("sample_model");
  const ByteRange weights = weights_of(bytes);
  {
    const SharedLibrary whole = SharedLibrary::load(ElfImage(bytes, "model"));
    const auto* begin = static_cast<const unsigned char*>(whole.find("_binary_constants_bin_start"));
    for (size_t i : {0, 77, 65535}) CHECK(begin[i] == i % 251);
  }
  const SharedLibrary library = SharedLibrary::load(ElfImage(bytes, "model"), std::span(&weights, 1));
  const auto* begin = static_cast<const unsigned char*>(library.find("_binary_constants_bin_start"));
  REQUIRE(begin);
  CHECK(std::all_of(begin, begin + weights.size, [](unsigned char c) { return c == 0; }));
  CHECK(library.function<int()>("sample_unique")() == 1);
  // Through the path of its own file, the library can read the appended bytes, except the part that was left out.
  std::vector<std::byte> appended = bytes;
  appended.resize((appended.size() + 16383) / 16384 * 16384 + (1 << 20));
  const uint64_t magic = 0x1122334455667788;
  std::memcpy(appended.data() + appended.size() - 8, &magic, 8);
  const ByteRange tail{appended.size() - (1 << 20), (1 << 20) - 8};
  const SharedLibrary self = SharedLibrary::load(ElfImage(appended, "model"), std::span(&tail, 1));
  Dl_info info;
  REQUIRE(dladdr(self.find("sample_unique"), &info));
  const int fd = open(info.dli_fname, O_RDONLY);
  REQUIRE(fd >= 0);
  CHECK(lseek(fd, 0, SEEK_END) == static_cast<off_t>(appended.size()));
  uint64_t read_back = 0;
  CHECK(pread(fd, &read_back, 8, static_cast<off_t>(appended.size() - 8)) == 8);
  CHECK(read_back == magic);
  CHECK(pwrite(fd, &read_back, 8, 0) < 0);
  close(fd);

  const ByteRange dynamic{ElfImage(bytes, "m").dynamic_offset() + 8, 1}, outside{bytes.size() - 1, 2};
  CHECK(message_of(bytes, ErrorCode::kInvalidArgument, std::span(&dynamic, 1)).find("dynamic linker reads") !=
        std::string::npos);
  CHECK(message_of(bytes, ErrorCode::kInvalidArgument, std::span(&outside, 1)).find("outside the file") !=
        std::string::npos);
}

namespace {
void* (*original_copy)(void*, const void*, size_t) = nullptr;
int copies = 0;
void* counting_copy(void* to, const void* from, size_t bytes) {
  ++copies;
  return original_copy(to, from, bytes);
}
char arena[64];
void* arena_malloc(size_t) { return arena; }
}  // namespace

TEST_CASE("shared library: an imported function is replaced, for this library alone") {
  for (const char* name : {"sample_model", "sample_now"}) {
    CAPTURE(name);
    const std::vector<std::byte> bytes = sample(name);
    SharedLibrary library = SharedLibrary::load(ElfImage(bytes, name));
    const SharedLibrary other = SharedLibrary::load(ElfImage(bytes, name));
    copies = 0;
    original_copy =
        reinterpret_cast<decltype(original_copy)>(library.rebind("memcpy", reinterpret_cast<void*>(&counting_copy)));
    REQUIRE((original_copy != nullptr));
    char to[8] = {};
    library.function<void(void*, const void*, size_t)>("sample_copy")(to, "copied", 7);
    CHECK(std::string(to) == "copied");
    CHECK(copies == 1);
    other.function<void(void*, const void*, size_t)>("sample_copy")(to, "direct", 7);
    CHECK(copies == 1);
    // A second rebind() returns the first replacement.
    CHECK(library.rebind("memcpy", reinterpret_cast<void*>(original_copy)) == reinterpret_cast<void*>(&counting_copy));

    // The library calls malloc() directly, and through a pointer in relocated read-only data.
    CHECK(library.rebind("malloc", reinterpret_cast<void*>(&arena_malloc)) == reinterpret_cast<void*>(&std::malloc));
    CHECK(library.function<void*(size_t)>("sample_allocate")(8) == arena);
    CHECK((*static_cast<void* (**)(size_t)>(library.find("sample_malloc_pointer")))(8) == arena);
    CHECK(library.rebind("sample_copy", nullptr) == nullptr);   // exported, not imported
    CHECK(library.rebind("pthread_exit", nullptr) == nullptr);  // neither
  }
}

TEST_CASE("shared library: names of libtorch that nothing calls do no harm, and fail by name") {
  const std::vector<std::byte> bytes = sample("sample_uncalled");
  const SharedLibrary library = SharedLibrary::load(ElfImage(bytes, "model"));
  auto* call = library.function<long(const long*)>("sample_uncalled");
  CHECK(call(nullptr) == 7);
  CHECK(*library.function<long*()>("sample_singleton")() == 0);
  const long number = 3;
  CHECK(contains(error_from(ErrorCode::kModelFailed, [&] { call(&number); }), "c10::SymInt::guard_int"));
}

TEST_CASE("shared library: what cannot load is an error with the reason") {
  const std::string missing = message_of(sample("sample_missing"), ErrorCode::kIncompatible);
  CHECK(missing.find("undefined symbol") != std::string::npos);
  std::vector<std::byte> foreign = sample("sample_model");
  reinterpret_cast<Elf64_Ehdr*>(foreign.data())->e_machine = EM_AARCH64;
  CHECK(message_of(foreign, ErrorCode::kIncompatible).find("not compiled for x86-64") != std::string::npos);
  CHECK(message_of({}, ErrorCode::kCorruptPackage).find("shorter than") != std::string::npos);
}

TEST_CASE("shared library: without memfd an unnamed file serves, and without those a temporary one; it says so") {
  const std::vector<std::byte> bytes = sample("sample_model");
  for (const bool unnamed : {false, true}) {
    CAPTURE(unnamed);
    const int status = in_child([&] {
      refuse_files(unnamed);
      std::string path;
      {
        const SharedLibrary library = SharedLibrary::load(ElfImage(bytes, "model"));
        const std::string expected = unnamed ? "a temporary file in /" : "an unnamed file in /";
        if (library.backing().find(expected) != 0) return 1;
        if (library.backing().find("memory: Function not implemented") == std::string::npos) return 2;
        if (library.function<int()>("sample_unique")() != 1) return 3;
        Dl_info info;
        if (!dladdr(library.find("sample_unique"), &info)) return 4;
        path = info.dli_fname;
        if (access(path.c_str(), R_OK) != 0) return 5;
      }
      return access(path.c_str(), R_OK) == 0 ? 6 : 0;
    });
    if (status == 77)
      MESSAGE("skipped: this machine allows no seccomp filters");
    else
      CHECK(status == 0);
  }
}
