// Reads and writes tensors as files: .npy, .npz (NumPy) and .safetensors.
//
// Readers trust nothing: every size, offset and name is checked before it is used, and an error names the file, the
// tensor and the reason. Tensors of .npy and .safetensors view a private mapping of the file where their data is
// aligned and of this machine's byte order, and are copies else; writing to them does not change the file. The file
// must keep its length while they live. Writers take any strides; they replace the file and leave none when they fail.
// Thread-safe. Codes: kIo (cannot be read or written), kCorruptPackage (the file lies), kUnsupported (a type that the
// format or Sconce does not have), kInvalidArgument (what is to be written).
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

// NumPy's format 1.0 to 3.0, either byte order. fortran_order becomes strides. No objects, structures or strings.
Tensor read_npy(const std::filesystem::path& path);
// bool, integers, float16 to float64, complex64, complex128; the others have no NumPy name: kUnsupported.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

// A zip of .npy members, stored or deflated, in the archive's order; names without ".npy".
std::vector<NamedTensor> read_npz(const std::filesystem::path& path);
// Stored. Names must differ.
void write_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

// In the order of the file's header.
std::vector<NamedTensor> read_safetensors(const std::filesystem::path& path);
// All dtypes but complex32 and complex128. Names must differ and be UTF-8; "__metadata__" is taken.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// Any of the three, told apart by their first bytes. A .npy gives one tensor named after the file.
std::vector<NamedTensor> read_tensors(const std::filesystem::path& path);

}  // namespace sconce
