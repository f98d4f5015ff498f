// TraceFile: a file that grows by whole pieces. A piece that cannot be written, on a full disk say, leaves nothing of
// itself behind, so that what stands before and after it can be read. Confined to its owner's thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sconce::server {

class TraceFile {
 public:
  TraceFile() = default;
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile() { close(); }

  // Creates the file, or empties one that exists. False: errno says why.
  bool open(const std::string& path) noexcept;
  bool is_open() const noexcept { return descriptor_ >= 0; }
  // False: errno says why, and the file is as it was, but where it is no regular one.
  bool write(std::string_view piece) noexcept;
  void close() noexcept;

 private:
  int descriptor_ = -1;
  int64_t bytes_ = 0;  // that stand
};

}  // namespace sconce::server
