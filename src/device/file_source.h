// FileTaker: a weight update that reads entries straight out of files to where they go, with no memory of the host
// between that is larger than a few buffers. An update that is one says so by its type.
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
  // Of a declared entry: others are to be given by memory() and complete().
  virtual bool takes(size_t entry) const = 0;
  // They are complete when it returns. `tick` is called on this thread with the bytes done so far, and may throw to
  // stop: the update is of no more use then. kIo, kFailedPrecondition (a file became shorter), kOutOfMemory, kDevice.
  virtual void take(std::span<const FilePart> parts, const std::function<void(uint64_t done)>& tick) = 0;

 protected:
  ~FileTaker() = default;
};

}  // namespace sconce
