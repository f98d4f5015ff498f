// Preloaded into servers by watched_calls.py: counts the calls that change files below CALLS_BELOW, and ends the
// process before one of them, in the middle of a write, or makes one fail. CALLS_FILE is memory that the test shares.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

struct Shared {
  std::atomic<uint64_t> watching, count, kill_at, halve, fail_at, error;
  std::atomic<uint64_t> used;  // bytes of `log`
  char log[4096];              // names of calls, each with a space after it
};

Shared* shared() noexcept {
  static Shared* const memory = []() -> Shared* {
    const char* const path = std::getenv("CALLS_FILE");
    const int file = path ? ::open(path, O_RDWR) : -1;
    if (file < 0) return nullptr;
    void* const at = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return at == MAP_FAILED ? nullptr : static_cast<Shared*>(at);
  }();
  return memory;
}

bool below(const char* path) noexcept {
  const char* const folder = std::getenv("CALLS_BELOW");
  return folder && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

bool below(int fd) noexcept {
  char link[64] = "/proc/self/fd/", path[4096];
  size_t at = std::strlen(link), digits = 0;
  char text[16];
  for (int rest = fd; rest > 0 || digits == 0; rest /= 10) text[digits++] = static_cast<char>('0' + rest % 10);
  while (digits > 0) link[at++] = text[--digits];
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return below(path);
}

enum class Verdict { kGo, kFail };

// `half` does half of the call's work; null if the call cannot be done by halves.
template <class Half>
Verdict judge(const char* name, const Half& half) noexcept {
  Shared* const s = shared();
  if (!s || s->watching == 0) return Verdict::kGo;
  const uint64_t number = s->count.fetch_add(1) + 1;
  const size_t length = std::strlen(name);
  const uint64_t at = s->used.fetch_add(length + 1);
  if (at + length + 1 < sizeof s->log) {
    std::memcpy(s->log + at, name, length);
    s->log[at + length] = ' ';
  }
  if (number == s->kill_at) {
    if (s->halve) half();
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }
  if (number != s->fail_at) return Verdict::kGo;
  errno = static_cast<int>(s->error.load());
  return Verdict::kFail;
}

Verdict judge(const char* name) noexcept {
  return judge(name, [] {});
}

template <class Function>
Function next(const char* name) noexcept {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ssize_t write(int fd, const void* data, size_t bytes) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  if (below(fd) && judge("write", [&] { real(fd, data, bytes / 2); }) == Verdict::kFail) return -1;
  return real(fd, data, bytes);
}

extern "C" int fsync(int fd) {
  static const auto real = next<int (*)(int)>("fsync");
  if (below(fd) && judge("fsync") == Verdict::kFail) return -1;
  return real(fd);
}

extern "C" int openat(int directory, const char* path, int flags, ...) {
  static const auto real = next<int (*)(int, const char*, int, mode_t)>("openat");
  mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
    if (below(directory) && judge("create") == Verdict::kFail) return -1;
  }
  return real(directory, path, flags, mode);
}

extern "C" int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
  static const auto real = next<int (*)(int, const char*, int, const char*)>("renameat");
  if (below(from_directory) && judge("rename") == Verdict::kFail) return -1;
  return real(from_directory, from, to_directory, to);
}

extern "C" int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) noexcept {
  static const auto real = next<int (*)(int, const char*, int, const char*, int)>("linkat");
  if (below(from_directory) && judge("link") == Verdict::kFail) return -1;
  return real(from_directory, from, to_directory, to, flags);
}

extern "C" int unlinkat(int directory, const char* path, int flags) noexcept {
  static const auto real = next<int (*)(int, const char*, int)>("unlinkat");
  if (below(directory) && judge("unlink") == Verdict::kFail) return -1;
  return real(directory, path, flags);
}

extern "C" int mkdir(const char* path, mode_t mode) noexcept {
  static const auto real = next<int (*)(const char*, mode_t)>("mkdir");
  if (below(path) && judge("mkdir") == Verdict::kFail) return -1;
  return real(path, mode);
}
