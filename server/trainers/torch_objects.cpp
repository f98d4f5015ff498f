#include "server/trainers/torch_objects.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "sconce/check.h"
#include "sconce/excerpt.h"

namespace sconce::server {
namespace {

constexpr off_t kHeader = 64;
constexpr uint64_t kMostCounters = 10000;  // of one object

// "/torch_PID_RANDOM_NUMBER"
bool is_torch_name(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "/torch_";
  return name.size() < 256 && name.starts_with(kPrefix) &&
         std::all_of(name.begin() + kPrefix.size(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
         });
}

struct Object {
  explicit Object(const std::string& name) noexcept
      : descriptor(is_torch_name(name) ? ::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0) : -1) {}
  ~Object() {
    if (descriptor >= 0) ::close(descriptor);
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  uint64_t size() const noexcept {
    struct stat status {};
    return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
  }

  const int descriptor;
};

}  // namespace

void take_torch_object(const std::string& name, std::span<std::byte> content) {
  SCONCE_CHECK(is_torch_name(name), kInvalidArgument, "not the name of a shared-memory object of PyTorch: '",
               excerpt(name), "'");
  const Object object(name);
  SCONCE_CHECK(object.descriptor >= 0, kInvalidArgument, "shared-memory object '", excerpt(name),
               "' cannot be opened: ", std::strerror(errno));
  const uint64_t size = object.size();
  SCONCE_CHECK(size >= uint64_t{kHeader} && content.size() <= size - uint64_t{kHeader}, kInvalidArgument,
               "shared-memory object '", excerpt(name), "' has ", size, " bytes, fewer than ", content.size(),
               " and a header");
  for (size_t done = 0; done < content.size();) {
    const ssize_t got =
        ::pread(object.descriptor, content.data() + done, content.size() - done, kHeader + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    SCONCE_CHECK(got > 0, kInvalidArgument, "shared-memory object '", excerpt(name), "' cannot be read");
    done += static_cast<size_t>(got);
  }
  int32_t references = 0;
  if (::pread(object.descriptor, &references, sizeof references, 0) != sizeof references || references <= 0) return;
  if (--references == 0) ::shm_unlink(name.c_str());
  [[maybe_unused]] const ssize_t put = ::pwrite(object.descriptor, &references, sizeof references, 0);
}

bool release_torch_counter(const std::string& name, uint64_t place) noexcept {
  if (place >= kMostCounters) return false;
  const Object object(name);
  if (object.descriptor < 0 || object.size() < uint64_t{kHeader} + kMostCounters * sizeof(int64_t)) return false;
  const off_t at = kHeader + static_cast<off_t>(place * sizeof(int64_t));
  int64_t count = 0;
  if (::pread(object.descriptor, &count, sizeof count, at) != sizeof count || count <= 0) return false;
  --count;
  return ::pwrite(object.descriptor, &count, sizeof count, at) == sizeof count;
}

}  // namespace sconce::server
