#include "server/telemetry/traces/trace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace sconce::server::telemetry {

bool TraceFile::open(const std::string& path) noexcept {
  close();
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bytes_ = 0;
  return is_open();
}

bool TraceFile::write(std::string_view piece) noexcept {
  for (std::string_view left = piece; !left.empty();) {
    const ssize_t done = ::write(descriptor_, left.data(), left.size());
    if (done > 0) {
      left.remove_prefix(static_cast<size_t>(done));
      continue;
    }
    if (done < 0 && errno == EINTR) continue;
    const int why = done == 0 ? ENOSPC : errno;
    // Both fail on a pipe or a device, where nothing can be undone.
    if (::ftruncate(descriptor_, bytes_) == 0) (void)::lseek(descriptor_, bytes_, SEEK_SET);
    errno = why;
    return false;
  }
  bytes_ += static_cast<int64_t>(piece.size());
  return true;
}

void TraceFile::close() noexcept {
  if (is_open()) ::close(std::exchange(descriptor_, -1));
}

}  // namespace sconce::server::telemetry
