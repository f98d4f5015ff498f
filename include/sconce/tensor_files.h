// Reads and writes tensors as files: .npy, .npz (NumPy) and .safetensors.
//
// Readers check every size, offset and name before use. An error names the file, the tensor and the reason. Tensors of
// .npy and .safetensors files view a private mapping of the file if their data is aligned and in this machine's byte
// order; otherwise they are copies. Writes to them do not change the file. The file must keep its length while they
// live. Writers take any strides. They replace the file atomically and leave no partial file on failure. Thread-safe.
// Codes: kIo (cannot be read or written), kCorruptPackage (the file contradicts itself), kUnsupported (a type that the
// format or Sconce lacks), kInvalidArgument (a tensor or name that cannot be written).
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sconce/tensor.h"

namespace sconce {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// NumPy's formats 1.0 to 3.0 in either byte order; fortran_order becomes strides. No objects, structures or strings.
Tensor read_npy(const std::filesystem::path& path);
// Takes bool, integers, float16 to float64, complex64 and complex128; other dtypes have no NumPy name: kUnsupported.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

// A zip of .npy members, stored or deflated. Tensors are in the archive's order, named without ".npy".
std::vector<NamedTensor> read_npz(const std::filesystem::path& path);
// Members are stored. Names must differ.
void write_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

// Tensors are in the order of the file's header.
std::vector<NamedTensor> read_safetensors(const std::filesystem::path& path);
// The header's entries besides tensors ("__metadata__").
std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path);
// Takes all dtypes except complex32 and complex128. Names must differ and be UTF-8; "__metadata__" is reserved.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// Detects the format by the first bytes. A .npy file gives one tensor, named after the file.
std::vector<NamedTensor> read_tensors(const std::filesystem::path& path);

}  // namespace sconce
