#include "fake_constants.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

extern "C" {
extern const unsigned char _binary_constants_bin_start[];
extern const unsigned char _binary_constants_bin_end[];
}

namespace fake {
namespace {

const unsigned char* external = nullptr;

#ifdef FAKE_APPENDED
// As models do: their own file, found by the name they were loaded by, is mapped from the weights on.
const unsigned char* map_own_file(size_t& bytes_mapped) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&map_own_file), &info)) throw std::runtime_error("cannot find own file");
  const int fd = open(info.dli_fname, O_RDONLY);
  if (fd < 0) throw std::runtime_error("own file cannot be opened");
  const auto end = static_cast<uint64_t>(lseek(fd, 0, SEEK_END));
  uint64_t size, magic, found;
  std::memcpy(&size, _binary_constants_bin_start, sizeof(size));
  std::memcpy(&magic, _binary_constants_bin_start + sizeof(size), sizeof(magic));
  if (size > end || ((end - size) & 0x3fff) != 0) throw std::runtime_error("weights are not aligned to 16 KiB");
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, static_cast<off_t>(end - size));
  close(fd);
  if (mapped == MAP_FAILED) throw std::runtime_error("mmap() failed");
  const auto* bytes = static_cast<const unsigned char*>(mapped);
  std::memcpy(&found, bytes + size - sizeof(magic), sizeof(magic));
  if (found != magic) throw std::runtime_error("weights data seems corrupt");
  bytes_mapped = size;
  return bytes;
}
#endif

}  // namespace

StoredConstants::~StoredConstants() {
  if (mapped_) munmap(const_cast<unsigned char*>(mapped_), mapped_bytes_);
}

const unsigned char* StoredConstants::get() {
#if defined(FAKE_APPENDED)
  if (!mapped_) mapped_ = map_own_file(mapped_bytes_);
  return mapped_;
#elif defined(FAKE_EXTERNAL) || defined(FAKE_WEIGHTLESS)
  if (!external) throw std::runtime_error("constants are not mapped: call AOTInductorModelUpdateConstantsFromBlob");
  return external;
#else
  return _binary_constants_bin_start;
#endif
}

void set_external_constants(const unsigned char* blob) { external = blob; }

}  // namespace fake
