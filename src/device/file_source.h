// FileTaker: a weight update that reads entries from files directly to their final memory, with only small buffers on
// the host. Use dynamic_cast to find out whether an update implements it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace sconce {

// All bytes of an entry, row-major, in an open file.
struct FilePart {
  size_t entry;
  int file;
  uint64_t offset;
};

class FileTaker {
 public:
  // Whether it accepts a declared entry; other entries use memory() and complete().
  virtual bool takes(size_t entry) const = 0;
  // Reads and completes these entries. `tick` is called on this thread with the bytes done so far, and may throw to
  // stop, after which the update cannot be used. kIo, kFailedPrecondition (a file became shorter), kOutOfMemory,
  // kDevice.
  virtual void take(std::span<const FilePart> parts, const std::function<void(uint64_t done)>& tick) = 0;

 protected:
  ~FileTaker() = default;
};

}  // namespace sconce
