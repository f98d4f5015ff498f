#include "src/tensor_files/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "src/support/element_walk.h"
#include "src/types/write_error.h"

namespace sconce::tensor_files {

namespace {

// By errno.
[[noreturn]] void fail(const char* what, const std::filesystem::path& path) {
  const int problem = errno;
  throw Error(write_error_code(problem), what + path.string() + ": " + std::strerror(problem));
}

}  // namespace

OutputFile::OutputFile(const std::filesystem::path& path) : path_(path) {
  static std::atomic<uint64_t> counter{0};
  temporary_ = path.string() + "." + std::to_string(::getpid()) + "-" + std::to_string(counter++);
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("cannot create file: ", path);
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot write file: ", path_);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void OutputFile::commit() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot write file: ", path_);
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) fail("cannot write file: ", path_);
}

void for_each_piece(const Tensor& tensor, std::string_view where,
                    const std::function<void(std::span<const std::byte>)>& take) {
  SCONCE_CHECK(tensor.defined(), kInvalidArgument, "tensor is undefined: ", where);
  SCONCE_CHECK(tensor.is_cpu() && tensor.layout() == Layout::kStrided, kUnsupported,
               "only strided tensors in main memory can be written: ", where, ": on ", to_string(tensor.device()));
  if (tensor.numel() == 0) return;
  const auto* data = tensor.data_as<const std::byte>();
  if (tensor.is_contiguous()) {
    take({data, tensor.bytes()});
    return;
  }
  constexpr size_t kPiece = size_t{1} << 20;
  const size_t item = tensor.itemsize();
  std::vector<std::byte> piece(std::min(kPiece, tensor.bytes()));
  size_t filled = 0;
  walk_elements(tensor.sizes(), tensor.strides(), tensor.strides(), [&](int64_t element, int64_t) {
    std::memcpy(&piece[filled], data + element * static_cast<int64_t>(item), item);
    filled += item;
    if (filled + item > piece.size()) {
      take({piece.data(), filled});
      filled = 0;
    }
  });
  if (filled > 0) take({piece.data(), filled});
}

}  // namespace sconce::tensor_files
