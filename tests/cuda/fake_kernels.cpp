// CPU implementations of the kernels that the tested host code launches on the devices of fake_runtime.cpp, and a
// launch function for the fake model.
#include <cstring>
#include <memory>
#include <vector>

#include "fake_runtime.h"
#include "sconce/device_memory.h"
#include "src/cuda/abi/compute_abi.h"
#include "src/cuda/abi/named_ops.h"
#include "src/cuda/runtime/graph_copies.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/runtime/strided_copy.h"
#include "src/cuda/sorting/largest_kernels.h"
#include "src/tensor/copy.h"

namespace sconce::cuda {
namespace {

using test::launch;

void copy_pieces(const std::vector<unsigned char>& arguments) {
  CopyPieces pieces;
  std::memcpy(&pieces, arguments.data(), sizeof pieces);
  for (const auto& piece : pieces.of)
    if (piece.bytes > 0) std::memmove(piece.to, piece.from, piece.bytes);
}

// One side of a copy as a host tensor.
Tensor side(const CopyShape& shape, void* data, const int64_t* strides, size_t itemsize, DType dtype) {
  std::vector<int64_t> sizes, steps;
  for (int d = shape.rank; d-- > 0;) {
    sizes.push_back(shape.sizes[d]);
    steps.push_back(strides[d] / static_cast<int64_t>(itemsize));
  }
  return Tensor::from_blob(data, sizes, steps, dtype);
}

void copy_elements(const CopyShape& shape, void* to, DType to_dtype, const void* from, DType from_dtype) {
  Tensor target = side(shape, to, shape.to, dtype_bytes(to_dtype), to_dtype);
  sconce::copy(side(shape, const_cast<void*>(from), shape.from, dtype_bytes(from_dtype), from_dtype), target);
}

DType of_bytes(int itemsize) {
  return itemsize == 1 ? DType::kUInt8 : itemsize == 2 ? DType::kInt16 : itemsize == 4 ? DType::kInt32 : DType::kInt64;
}

}  // namespace

void launch_copies(const CopyPieces& pieces, int, cudaStream_t stream) {
  const auto* const begin = reinterpret_cast<const unsigned char*>(&pieces);
  test::launch_pieces("launch_copies", stream, {begin, begin + sizeof pieces}, &copy_pieces);
}
cudaKernelNodeParams copy_node(const CopyPieces& pieces, int, void** argument) {
  *argument = const_cast<CopyPieces*>(&pieces);
  cudaKernelNodeParams params{};
  params.kernelParams = argument;
  return params;
}

void launch_copy(const CopyShape& shape, void* to, int to_dtype, const void* from, int from_dtype,
                 cudaStream_t stream) {
  launch("launch_copy", stream,
         [=] { copy_elements(shape, to, static_cast<DType>(to_dtype), from, static_cast<DType>(from_dtype)); });
}
void launch_move(const CopyShape& shape, void* to, const void* from, int itemsize, cudaStream_t stream) {
  launch("launch_move", stream, [=] { copy_elements(shape, to, of_bytes(itemsize), from, of_bytes(itemsize)); });
}
void launch_fill(const CopyShape& shape, void* to, const void* element, int itemsize, cudaStream_t stream) {
  const auto* const begin = static_cast<const unsigned char*>(element);
  const std::vector<unsigned char> value(begin, begin + itemsize);
  CopyShape filled = shape;
  for (int64_t& stride : filled.from) stride = 0;
  launch("launch_fill", stream,
         [=] { copy_elements(filled, to, of_bytes(itemsize), value.data(), of_bytes(itemsize)); });
}

cudaError_t launch_largest(void*, const LargestCall& call, cudaStream_t stream) {
  launch("launch_largest", stream, [=] {
    const int64_t sizes[] = {call.rows, call.length}, strides[] = {call.row_stride, call.step};
    const Tensor rows = Tensor::from_blob(const_cast<void*>(call.in), sizes, strides, static_cast<DType>(call.dtype));
    const Tensor ranks = last_rows(rows, {.parts = call.rows, .largest = call.count});
    std::memcpy(call.ranks, ranks.data(), ranks.bytes());
  });
  return cudaGetLastError();
}

// The fake model calls no operators.
DeviceBackend::NamedKernel kernel_named(std::string_view) noexcept { return nullptr; }
std::span<const DeviceBackend::Replacement> compute_replacements() noexcept { return {}; }

}  // namespace sconce::cuda

// Declared in tests/fake_model/fake_container.cpp: runs the model's own kernel on the thread's stream.
extern "C" const char* fake_cuda_launch(void (*work)(const void* arguments), const void* arguments, size_t bytes) {
  const auto* const begin = static_cast<const unsigned char*>(arguments);
  const auto kept = std::make_shared<std::vector<unsigned char>>(begin, begin + bytes);
  const cudaError_t error =
      sconce::test::launch_by_driver("the model's kernel", sconce::cuda::current_stream(), [=] { work(kept->data()); });
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
