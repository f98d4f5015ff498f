#include "src/tensor_files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "sconce/check.h"

namespace sconce::tensor_files {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

void drop_mapping(void*, size_t, void* context) noexcept {
  delete static_cast<std::shared_ptr<const MappedFile>*>(context);
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  SCONCE_CHECK(fd.get() >= 0, kIo, "cannot open file: ", path.string(), ": ", std::strerror(errno));
  struct stat status {};
  SCONCE_CHECK(::fstat(fd.get(), &status) == 0, kIo, "cannot read file: ", path.string(), ": ", std::strerror(errno));
  SCONCE_CHECK(S_ISREG(status.st_mode), kIo, "cannot read file: ", path.string(), ": not a regular file");
  std::shared_ptr<MappedFile> file(new MappedFile(path));
  if (status.st_size == 0) return file;
  const size_t size = static_cast<size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd.get(), 0);
  SCONCE_CHECK(address != MAP_FAILED, kIo, "cannot map file: ", path.string(), ": ", std::strerror(errno));
  file->bytes_ = {static_cast<std::byte*>(address), size};
  return file;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Tensor view_or_copy(const std::shared_ptr<const MappedFile>& file, std::span<std::byte> data, DType dtype,
                    IntSpan sizes, IntSpan strides) {
  const size_t alignment = is_complex(dtype) ? dtype_bytes(dtype) / 2 : dtype_bytes(dtype);
  if (reinterpret_cast<uintptr_t>(data.data()) % alignment == 0) {
    auto context = std::make_unique<std::shared_ptr<const MappedFile>>(file);
    Tensor tensor = Tensor::from_blob(data.data(), sizes, strides, dtype, Device{}, drop_mapping, context.get());
    context.release();
    return tensor;
  }
  Tensor tensor = Tensor::empty_strided(sizes, strides, dtype);
  if (!data.empty()) std::memcpy(tensor.data(), data.data(), data.size());
  return tensor;
}

}  // namespace sconce::tensor_files
