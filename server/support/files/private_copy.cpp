#include "server/support/files/private_copy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "sconce/check.h"

namespace sconce::server {
namespace {

constexpr size_t kPiece = size_t{1} << 20;
// The kernel accepts names of up to 249 bytes.
constexpr size_t kLongestLabel = 200;

std::string reason() { return std::strerror(errno); }

void append(int memory, std::span<const std::byte> bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(memory, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    SCONCE_CHECK(written > 0, kOutOfMemory, "no memory for a copy of ", name, ": ", reason());
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

}  // namespace

PrivateCopy::PrivateCopy(const std::filesystem::path& file, uint64_t most) {
  const std::string& name = file.native();
  // O_NONBLOCK: opening a FIFO must not block.
  const Descriptor source(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  SCONCE_CHECK(source.get() >= 0, kIo, "cannot open ", name, ": ", reason());
  struct stat status {};
  SCONCE_CHECK(::fstat(source.get(), &status) == 0, kIo, "cannot read ", name, ": ", reason());
  SCONCE_CHECK(S_ISREG(status.st_mode), kIo, "not a regular file: ", name);
  const std::string shown = file.filename().string().substr(0, kLongestLabel);
  memory_ = Descriptor(::memfd_create(shown.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  SCONCE_CHECK(memory_.get() >= 0, kOutOfMemory, "no memory for a copy of ", name, ": ", reason());
  const auto piece = std::make_unique<std::byte[]>(kPiece);
  for (;;) {
    const ssize_t count = ::read(source.get(), piece.get(), kPiece);
    if (count < 0 && errno == EINTR) continue;
    SCONCE_CHECK(count >= 0, kIo, "cannot read ", name, ": ", reason());
    if (count == 0) break;
    size_ += static_cast<size_t>(count);
    SCONCE_CHECK(size_ <= most, kTooLarge, name, " has more than ", most, " bytes");
    append(memory_.get(), {piece.get(), static_cast<size_t>(count)}, name);
  }
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  SCONCE_CHECK(::fcntl(memory_.get(), F_ADD_SEALS, kSeals) == 0, kIo, "cannot seal the copy of ", name, ": ", reason());
  if (size_ == 0) return;
  void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, memory_.get(), 0);
  SCONCE_CHECK(mapped != MAP_FAILED, kOutOfMemory, "no memory for a copy of ", name, ": ", reason());
  data_ = static_cast<const std::byte*>(mapped);
}

PrivateCopy::~PrivateCopy() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::filesystem::path PrivateCopy::path() const { return "/proc/self/fd/" + std::to_string(memory_.get()); }

}  // namespace sconce::server
