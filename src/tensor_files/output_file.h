// OutputFile: a new file that gets its name only when it is complete. Used by one thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce::tensor_files {

class OutputFile {
 public:
  // Creates the file under a temporary name in the same folder. kIo; kOutOfMemory for a full disk, as below.
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();  // removes the file unless it was committed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

  // For libraries that write by name; they may replace the file.
  const std::string& temporary_path() const noexcept { return temporary_; }

 private:
  std::filesystem::path path_;
  std::string temporary_;
  int fd_ = -1;
};

// Passes on the elements in row-major order, little endian, in pieces of at most 1 MiB (one piece if contiguous).
// kUnsupported for tensors that are not strided or not on the CPU.
void for_each_piece(const Tensor& tensor, std::string_view where,
                    const std::function<void(std::span<const std::byte>)>& take);

}  // namespace sconce::tensor_files
