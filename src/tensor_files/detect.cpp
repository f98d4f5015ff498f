// read_tensors: detects the format.
#include <array>
#include <cstring>
#include <fstream>

#include "sconce/check.h"
#include "sconce/tensor_files.h"
#include "src/tensor_files/npy_header.h"

namespace sconce {

std::vector<NamedTensor> read_tensors(const std::filesystem::path& path) {
  std::array<char, 9> start{};
  std::error_code ignored;
  // Opening a pipe here would block forever; the readers refuse it by name.
  const bool regular = std::filesystem::is_regular_file(path, ignored);
  if (regular) std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  if (tensor_files::is_npy(std::as_bytes(std::span(start)))) {
    std::vector<NamedTensor> one;
    one.push_back({path.stem().string(), read_npy(path)});
    return one;
  }
  if (std::memcmp(start.data(), "PK", 2) == 0) return read_npz(path);
  const std::string extension = path.extension().string();
  SCONCE_CHECK(start[8] == '{' || extension == ".safetensors" || !regular, kUnsupported,
               "not a .npy, .npz or .safetensors file: ", path.string());
  return read_safetensors(path);
}

}  // namespace sconce
