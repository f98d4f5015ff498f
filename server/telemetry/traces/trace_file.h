// TraceFile: a file that grows by whole pieces. A partly written piece (for example on a full disk) is removed again,
// so that the other pieces stay readable. Used only on its owner's thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sconce::server::telemetry {

class TraceFile {
 public:
  TraceFile() = default;
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile() { close(); }

  // Creates or empties the file. Returns false with errno.
  bool open(const std::string& path) noexcept;
  bool is_open() const noexcept { return descriptor_ >= 0; }
  // Returns false with errno; a regular file is then unchanged.
  bool write(std::string_view piece) noexcept;
  void close() noexcept;

 private:
  int descriptor_ = -1;
  int64_t bytes_ = 0;  // bytes of complete pieces
};

}  // namespace sconce::server::telemetry
