// data.bin of a case: the storages of its tensors, mapped read-only. Immutable.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "sconce/tensor.h"
#include "tests/conformance/case.h"

namespace sconce::conformance {

class DataFile {
 public:
  explicit DataFile(const std::filesystem::path& path);  // throws std::exception; a missing file is an empty one
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  // The tensor's storage. Throws where it lies outside the file or the tensor outside the storage.
  std::span<const std::byte> storage(const TensorCase& tensor) const;
  // A tensor of the case's shape, strides and offset over a copy of its storage.
  Tensor load(const TensorCase& tensor) const;

 private:
  std::span<const std::byte> bytes_;
};

// A tensor of the case's shape, strides and offset over a storage that exists.
Tensor view(const TensorCase& tensor, const StoragePtr& storage);

}  // namespace sconce::conformance
