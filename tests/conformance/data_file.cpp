#include "tests/conformance/data_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace sconce::conformance {
namespace {

void free_bytes(void* data, size_t, void*) noexcept { std::free(data); }

}  // namespace

DataFile::DataFile(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  struct stat status {};
  void* address = MAP_FAILED;
  if (::fstat(fd, &status) == 0 && status.st_size > 0)
    address = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (address != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(address), static_cast<size_t>(status.st_size)};
  if (address == MAP_FAILED && status.st_size > 0) throw std::runtime_error("cannot map " + path.string());
}

DataFile::~DataFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::span<const std::byte> DataFile::storage(const TensorCase& tensor) const {
  const size_t needed = storage_bytes_needed(tensor.shape, tensor.stride, tensor.offset, dtype_bytes(tensor.dtype));
  if (needed > tensor.bytes || tensor.at > bytes_.size() || tensor.bytes > bytes_.size() - tensor.at)
    throw std::runtime_error("case.json: a tensor lies outside its storage or data.bin");
  return bytes_.subspan(tensor.at, tensor.bytes);
}

Tensor DataFile::load(const TensorCase& tensor) const {
  const std::span<const std::byte> bytes = storage(tensor);
  // Exactly as large as recorded but for the rounding that aligned_alloc asks for.
  void* data = std::aligned_alloc(64, (bytes.size() + 63) / 64 * 64 + (bytes.empty() ? 64 : 0));
  if (!data) throw std::bad_alloc();
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  return view(tensor, StoragePtr::adopt(new Storage(data, bytes.size(), Device{}, free_bytes, nullptr)));
}

Tensor view(const TensorCase& tensor, const StoragePtr& storage) {
  return Tensor(storage, tensor.dtype, tensor.shape, tensor.stride, tensor.offset);
}

}  // namespace sconce::conformance
