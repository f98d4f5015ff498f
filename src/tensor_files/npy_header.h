// The header of NumPy's .npy format, versions 1.0 to 3.0: magic, version, length, then a Python dict literal of
// 'descr', 'fortran_order' and 'shape'. Matches numpy.lib.format, NumPy 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/tensor.h"

namespace sconce::tensor_files {

struct NpyHeader {
  DType dtype = DType::kFloat32;
  bool swap_bytes = false;  // stored in the other byte order
  std::vector<int64_t> sizes, strides;
  size_t header_bytes = 0;  // data starts here
  size_t data_bytes = 0;
};

// The longest accepted header; NumPy's own limit is 10,000.
constexpr size_t kMaxNpyHeader = size_t{1} << 20;

bool is_npy(std::span<const std::byte> bytes) noexcept;
// `bytes` starts with the header; more may follow. `where` names file and member in errors.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view where);
// kCorruptPackage if the number of data bytes differs from the header's. `format` starts the error.
void check_data_bytes(const NpyHeader& header, uint64_t found, std::string_view where, const char* format = "npy");
// Padded so that data starts at a multiple of 64. kUnsupported if NumPy has no such dtype.
std::string make_npy_header(DType dtype, IntSpan sizes, std::string_view where);

// Reverses the bytes of each element (of each component of a complex one).
void swap_bytes(std::span<std::byte> data, DType dtype) noexcept;
// kCorruptPackage if a bool is neither 0 nor 1, because compiled code may rely on these values.
void check_bools(std::span<const std::byte> data, std::string_view where);

}  // namespace sconce::tensor_files
