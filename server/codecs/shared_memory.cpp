#include "server/codecs/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "server/support/json/base64.h"
#include "server/support/json_cursor.h"
#include "src/support/error_context.h"
#include "src/support/excerpt.h"

namespace sconce::server::codecs {
namespace {

constexpr size_t kMaxRegions = 1024;
constexpr size_t kLongestName = 256;
constexpr size_t kLongestKey = 255;
// Number of bytes that compiled kernels read at once.
constexpr uintptr_t kDeviceAlignment = 16;

// The members of a request to register a region.
struct Registration {
  std::string key, handle;  // decoded
  bool has_handle = false, has_device = false, has_size = false;
  uint64_t offset = 0, device = 0, bytes = 0;
};

// "/name" without another slash, the unambiguous form for shm_open().
bool is_key(std::string_view key) noexcept {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '[' || c == ']';
  };
  return key.size() > 1 && key.size() <= kLongestKey && key[0] == '/' && key[1] != '.' &&
         std::all_of(key.begin() + 1, key.end(), plain);
}

void read_handle(JsonCursor& json, Registration& registration) {
  json.object("'raw_handle'", [&](std::string_view member) {
    if (member != "b64") {
      json.skip();
      return;
    }
    registration.has_handle = true;
    std::optional<std::string> handle = decode_base64(json.string("'b64' of 'raw_handle'"));
    SCONCE_CHECK(handle, kInvalidArgument, "'b64' of 'raw_handle' is not base64");
    registration.handle = std::move(*handle);
  });
}

Registration read_registration(SharedMemory::Kind kind, std::string_view body) {
  const bool posix = kind == SharedMemory::Kind::kPosix;
  Registration registration;
  JsonCursor::read_request(body, [&](JsonCursor& json, std::string_view member) {
    if (posix && member == "key") {
      registration.key = json.string("'key'");
    } else if (posix && member == "offset") {
      registration.offset = json.unsigned_integer("'offset'");
    } else if (!posix && member == "raw_handle") {
      read_handle(json, registration);
    } else if (!posix && member == "device_id") {
      registration.device = json.unsigned_integer("'device_id'");
      registration.has_device = true;
    } else if (member == "byte_size") {
      registration.bytes = json.unsigned_integer("'byte_size'");
      registration.has_size = true;
    } else {
      json.skip();
    }
  });
  if (posix) {
    SCONCE_CHECK(is_key(registration.key), kInvalidArgument,
                 "'key' must be '/' and a name of letters, digits, '_-.[]': '", excerpt(registration.key), "'");
  } else {
    SCONCE_CHECK(registration.has_handle, kInvalidArgument, "'raw_handle' with 'b64' must be given");
    SCONCE_CHECK(registration.handle.size() == kDeviceMemoryHandleBytes, kInvalidArgument, "'raw_handle' must be ",
                 kDeviceMemoryHandleBytes, " bytes, got ", registration.handle.size());
    SCONCE_CHECK(registration.has_device, kInvalidArgument, "'device_id' must be given");
  }
  SCONCE_CHECK(registration.has_size && registration.bytes > 0, kInvalidArgument,
               "'byte_size' must be given and not 0");
  return registration;
}

StoragePtr open_handle(std::string_view handle, uint64_t device) {
  SCONCE_CHECK(device <= INT8_MAX, kInvalidArgument, "'device_id' ", device, " does not exist");
  return open_device_memory(std::span<const std::byte, kDeviceMemoryHandleBytes>(
                                reinterpret_cast<const std::byte*>(handle.data()), kDeviceMemoryHandleBytes),
                            Device{DeviceType::kCuda, static_cast<int8_t>(device)});
}

// name: empty for any.
bool is_meant(const SharedRegion& region, SharedMemory::Kind kind, std::string_view name) noexcept {
  return (region.device() != nullptr) == (kind == SharedMemory::Kind::kDevice) && (name.empty() || region.name == name);
}

constexpr int64_t kOneByte = 1;

// The code for an error of shm_open(): kInvalidArgument if the name or the object's permissions are wrong, kIo for
// failures of this process or the system.
ErrorCode code_of_open(int error) noexcept {
  switch (error) {
    case ENOENT:
    case EACCES:
    case ENAMETOOLONG:
    case ELOOP:
    case EISDIR:
    case EINVAL:
      return ErrorCode::kInvalidArgument;
    default:
      return ErrorCode::kIo;
  }
}

// A contiguous tensor of bytes over memory that outlives it.
Tensor bytes_at(const void* data, size_t count, Device device) {
  const auto size = static_cast<int64_t>(count);
  return Tensor::from_blob(const_cast<void*>(data), {&size, 1}, {&kOneByte, 1}, DType::kUInt8, device);
}

}  // namespace

void SharedRegion::check_range(uint64_t at, uint64_t count) const {
  SCONCE_CHECK(at <= bytes && count <= bytes - at, kInvalidArgument, "invalid offset ", at, " and byte size ", count,
               " for shared memory region '", excerpt(name), "' of ", bytes, " bytes");
}

PosixRegion::PosixRegion(std::string name, std::string key, uint64_t offset, uint64_t bytes)
    : SharedRegion(std::move(name), bytes), key(std::move(key)), offset(offset) {
  descriptor_ = shm_open(this->key.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (descriptor_ < 0) {
    const int error = errno;
    detail::fail(code_of_open(error), "unable to open shared memory region '", excerpt(this->name),
                 "': ", std::strerror(error));
  }
  struct stat status {};
  const int problem = fstat(descriptor_, &status) == 0 ? 0 : errno;
  const bool known = problem == 0 && S_ISREG(status.st_mode) && status.st_size >= 0;
  const uint64_t size = known ? static_cast<uint64_t>(status.st_size) : 0;
  if (known && offset <= size && bytes <= size - offset) return;
  close(descriptor_);  // the destructor does not run if the constructor throws
  SCONCE_CHECK(problem == 0, kIo, "shared memory region '", excerpt(this->name),
               "' cannot be read: ", std::strerror(problem));
  SCONCE_FAIL(kInvalidArgument, "shared memory region '", excerpt(this->name), "': offset ", offset, " and byte_size ",
              bytes, " are beyond the object's ", size, " bytes");
}

PosixRegion::~PosixRegion() { close(descriptor_); }

void PosixRegion::read(uint64_t at, std::byte* to, size_t count) const {
  while (count > 0) {
    const ssize_t got = pread(descriptor_, to, count, static_cast<off_t>(offset + at));
    if (got < 0 && errno == EINTR) continue;
    SCONCE_CHECK(got >= 0, kIo, "shared memory region '", excerpt(name), "' cannot be read: ", std::strerror(errno));
    SCONCE_CHECK(got > 0, kInvalidArgument, "shared memory region '", excerpt(name), "' has become smaller");
    to += got;
    at += static_cast<uint64_t>(got);
    count -= static_cast<size_t>(got);
  }
}

void PosixRegion::write(uint64_t at, const std::byte* from, size_t count) const {
  // Writing beyond the end would enlarge the object.
  struct stat status {};
  SCONCE_CHECK(fstat(descriptor_, &status) == 0, kIo, "shared memory region '", excerpt(name),
               "' cannot be written: ", std::strerror(errno));
  SCONCE_CHECK(offset + at + count <= static_cast<uint64_t>(status.st_size), kInvalidArgument, "shared memory region '",
               excerpt(name), "' has become smaller");
  while (count > 0) {
    const ssize_t put = pwrite(descriptor_, from, count, static_cast<off_t>(offset + at));
    if (put < 0 && errno == EINTR) continue;
    SCONCE_CHECK(put > 0, kIo, "shared memory region '", excerpt(name),
                 "' cannot be written: ", put < 0 ? std::strerror(errno) : "nothing is taken");
    from += put;
    at += static_cast<uint64_t>(put);
    count -= static_cast<size_t>(put);
  }
}

DeviceRegion::DeviceRegion(std::string name, std::string_view handle, uint64_t device, uint64_t bytes)
    : SharedRegion(std::move(name), bytes), storage_(open_handle(handle, device)) {
  SCONCE_CHECK(bytes <= storage_->bytes(), kInvalidArgument, "CUDA shared memory region '", excerpt(this->name),
               "': byte_size ", bytes, " is beyond the allocation's ", storage_->bytes(), " bytes");
}

void DeviceRegion::read(uint64_t at, std::byte* to, size_t count) const {
  if (count == 0) return;
  Tensor here = bytes_at(to, count, Device{});
  transfer(bytes_at(static_cast<const std::byte*>(storage_->data()) + at, count, where()), here);
}

Tensor DeviceRegion::view(uint64_t at, DType dtype, IntSpan sizes) const {
  std::array<int64_t, Tensor::kMaxRank> strides;
  contiguous_strides(sizes, strides.data());
  storage_->retain();
  return Tensor::from_blob(
      static_cast<std::byte*>(storage_->data()) + at, sizes, {strides.data(), sizes.size()}, dtype, where(),
      [](void*, size_t, void* owner) noexcept { static_cast<Storage*>(owner)->release(); }, storage_.get());
}

Tensor DeviceRegion::tensor(uint64_t at, DType dtype, IntSpan sizes) const {
  const std::byte* const data = static_cast<const std::byte*>(storage_->data()) + at;
  if (reinterpret_cast<uintptr_t>(data) % kDeviceAlignment == 0) return view(at, dtype, sizes);
  Tensor copy = Tensor::empty(sizes, dtype, where());
  Tensor bytes = bytes_at(copy.data(), copy.bytes(), where());
  transfer(bytes_at(data, copy.bytes(), where()), bytes);
  return copy;
}

void DeviceRegion::write(uint64_t at, const Tensor& tensor) const {
  if (tensor.numel() == 0) return;
  std::byte* const data = static_cast<std::byte*>(storage_->data()) + at;
  if (reinterpret_cast<uintptr_t>(data) % tensor.itemsize() == 0) {
    Tensor there = view(at, tensor.dtype(), tensor.sizes());
    return transfer(tensor, there);
  }
  Tensor packed = tensor;
  if (!tensor.is_contiguous()) {
    packed = Tensor::empty(tensor.sizes(), tensor.dtype(), where());
    transfer(tensor, packed);
  }
  Tensor there = bytes_at(data, tensor.bytes(), where());
  transfer(bytes_at(packed.data(), tensor.bytes(), packed.device()), there);
}

void SharedMemory::check_new(std::string_view name) const {
  const MutexLock lock(mutex_);
  SCONCE_CHECK(regions_.find(name) == regions_.end(), kInvalidArgument, "shared memory region '", excerpt(name),
               "' already in manager");
  SCONCE_CHECK(regions_.size() < kMaxRegions, kInvalidArgument, "more than ", kMaxRegions, " shared memory regions");
}

void SharedMemory::add(Kind kind, std::string_view name, std::string_view body) {
  SCONCE_CHECK(allowed_, kForbidden, "shared memory is not allowed on this server (setting allow_shared_memory)");
  SCONCE_CHECK(name.size() <= kLongestName, kInvalidArgument, "name of a shared memory region is longer than ",
               kLongestName, " bytes");
  Registration registration = read_registration(kind, body);
  check_new(name);  // before anything is opened
  std::shared_ptr<const SharedRegion> region;
  if (kind == Kind::kPosix) {
    region = std::make_shared<const PosixRegion>(std::string(name), std::move(registration.key), registration.offset,
                                                 registration.bytes);
  } else {
    const std::string where = std::string("CUDA shared memory region '").append(excerpt(name)).append("'");
    const ErrorContext context(where);
    region = std::make_shared<const DeviceRegion>(std::string(name), registration.handle, registration.device,
                                                  registration.bytes);
  }
  const MutexLock lock(mutex_);
  SCONCE_CHECK(regions_.size() < kMaxRegions, kInvalidArgument, "more than ", kMaxRegions, " shared memory regions");
  const bool added = regions_.emplace(name, std::move(region)).second;
  SCONCE_CHECK(added, kInvalidArgument, "shared memory region '", excerpt(name), "' already in manager");
}

void SharedMemory::remove(Kind kind, std::string_view name) {
  std::vector<std::shared_ptr<const SharedRegion>> gone;  // closed after the lock is released
  const MutexLock lock(mutex_);
  std::erase_if(regions_, [&](auto& entry) {
    if (!is_meant(*entry.second, kind, name)) return false;
    gone.push_back(std::move(entry.second));
    return true;
  });
}

std::shared_ptr<const SharedRegion> SharedMemory::find(std::string_view name) const {
  const MutexLock lock(mutex_);
  const auto it = regions_.find(name);
  SCONCE_CHECK(it != regions_.end(), kNotFound, "Unable to find shared memory region: '", excerpt(name), "'");
  return it->second;
}

std::vector<std::shared_ptr<const SharedRegion>> SharedMemory::list(Kind kind, std::string_view name) const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const SharedRegion>> regions;
  for (const auto& [key, region] : regions_) {
    if (is_meant(*region, kind, name)) regions.push_back(region);
  }
  SCONCE_CHECK(name.empty() || !regions.empty(), kNotFound, "Unable to find ", kind == Kind::kPosix ? "system" : "cuda",
               " shared memory region: '", excerpt(name), "'");
  return regions;
}

}  // namespace sconce::server::codecs
