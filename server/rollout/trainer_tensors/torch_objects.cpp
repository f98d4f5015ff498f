#include "server/rollout/trainer_tensors/torch_objects.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace {

constexpr off_t kHeader = 64;
constexpr uint64_t kMaxCounters = 10000;  // per object

// "/torch_PID_RANDOM_NUMBER"
bool is_torch_name(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "/torch_";
  return name.size() < 256 && name.starts_with(kPrefix) &&
         std::all_of(name.begin() + kPrefix.size(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
         });
}

int open_object(const std::string& name) noexcept {
  return is_torch_name(name) ? ::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0) : -1;
}

uint64_t size_of(int descriptor) noexcept {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
}

}  // namespace

TorchObject::TorchObject(const std::string& name, uint64_t content)
    : shown_("shared-memory object '" + excerpt(name) + "'"), descriptor_(open_object(name)) {
  SCONCE_CHECK(is_torch_name(name), kInvalidArgument, "not the name of a shared-memory object of PyTorch: '",
               excerpt(name), "'");
  SCONCE_CHECK(descriptor_ >= 0, kInvalidArgument, shown_, " cannot be opened: ", std::strerror(errno));
  const uint64_t size = size_of(descriptor_);
  if (size >= uint64_t{kHeader} && content <= size - uint64_t{kHeader}) return;
  ::close(descriptor_);
  SCONCE_FAIL(kInvalidArgument, shown_, " has ", size, " bytes, fewer than ", content, " and a header");
}

TorchObject::~TorchObject() { ::close(descriptor_); }

void TorchObject::read(std::span<std::byte> content) const {
  for (size_t done = 0; done < content.size();) {
    const ssize_t got =
        ::pread(descriptor_, content.data() + done, content.size() - done, kHeader + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    SCONCE_CHECK(got > 0, kInvalidArgument, shown_, " cannot be read");
    done += static_cast<size_t>(got);
  }
}

bool release_torch_object(const std::string& name) noexcept {
  const int descriptor = open_object(name);
  if (descriptor < 0) return false;
  int32_t references = 0;
  const bool counted = size_of(descriptor) >= uint64_t{kHeader} &&
                       ::pread(descriptor, &references, sizeof references, 0) == sizeof references && references > 0;
  if (counted) {
    if (--references == 0) ::shm_unlink(name.c_str());
    [[maybe_unused]] const ssize_t put = ::pwrite(descriptor, &references, sizeof references, 0);
  }
  ::close(descriptor);
  return counted;
}

bool release_torch_counter(const std::string& name, uint64_t place) noexcept {
  if (place >= kMaxCounters) return false;
  const int descriptor = open_object(name);
  if (descriptor < 0) return false;
  const off_t at = kHeader + static_cast<off_t>(place * sizeof(int64_t));
  int64_t count = 0;
  bool counted = size_of(descriptor) >= uint64_t{kHeader} + kMaxCounters * sizeof(int64_t) &&
                 ::pread(descriptor, &count, sizeof count, at) == sizeof count && count > 0;
  --count;
  counted = counted && ::pwrite(descriptor, &count, sizeof count, at) == sizeof count;
  ::close(descriptor);
  return counted;
}

}  // namespace sconce::server::rollout
