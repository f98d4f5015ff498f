#include "src/runner/constants/own_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace sconce::runner {
namespace {

// A file in memory without a name, which nobody writes any more. Pages of a package's own file would not do: who
// truncates a file takes even the pages away that somebody has written to a private mapping of it.
class SealedCopy {
 public:
  explicit SealedCopy(const Storage& from)
      : fd_(::memfd_create("sconce-constant", MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes_(from.bytes()) {
    good_ = fd_ >= 0 && write(static_cast<const char*>(from.data())) &&
            ::fcntl(fd_, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  }
  ~SealedCopy() {
    if (fd_ >= 0) ::close(fd_);
  }
  SealedCopy(const SealedCopy&) = delete;
  SealedCopy& operator=(const SealedCopy&) = delete;

  bool good() const noexcept { return good_; }
  StoragePtr map() const {
    void* const pages = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd_, 0);
    if (pages == MAP_FAILED) return {};
    struct Unmapped {
      void* pages;
      size_t bytes;
      ~Unmapped() {
        if (pages) ::munmap(pages, bytes);
      }
    } owner{pages, bytes_};
    StoragePtr storage = StoragePtr::adopt(new Storage(
        pages, bytes_, Device{}, [](void* data, size_t bytes, void*) noexcept { ::munmap(data, bytes); }, nullptr));
    owner.pages = nullptr;
    return storage;
  }

 private:
  bool write(const char* from) const noexcept {
    constexpr size_t kPiece = size_t{64} << 20;
    for (size_t at = 0; at < bytes_;) {
      const ssize_t n = ::write(fd_, from + at, std::min(kPiece, bytes_ - at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += static_cast<size_t>(n);
    }
    return true;
  }

  const int fd_;
  const size_t bytes_;
  bool good_ = false;
};

}  // namespace

StoragePtr own_pages(Storage& constant) {
  static const char kind = 0;
  const auto* const copy = static_cast<const SealedCopy*>(constant.derived({&kind}, []() -> Storage::Derive {
    return [](Storage& from) -> Storage::Value {
      auto made = std::make_shared<SealedCopy>(from);
      if (!made->good()) return nullptr;
      from.give_up(0);
      return {std::move(made), from.bytes()};
    };
  }));
  return copy ? copy->map() : StoragePtr();
}

}  // namespace sconce::runner
