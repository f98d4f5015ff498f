// DnnGraph: operations of cuDNN's graph interface (cuDNN 9), planned once and run many times. Its plans cost the host
// less per run than cuDNN's older functions, and only it has attention.
//
//   DnnGraph graph;
//   const auto x = graph.tensor(CUDNN_DATA_HALF, sizes, strides), ...;
//   graph.convolution(...);
//   if (graph.plan(handle) == CUDNN_STATUS_SUCCESS) graph.run(handle, {x's address, ...}, workspace);
//
// One thread at a time. No exceptions: what cuDNN does not do is a status, which the first step that fails leaves.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

namespace sconce::cuda {

class DnnDescriptor {
 public:
  DnnDescriptor() = default;
  DnnDescriptor(cudnnBackendDescriptorType_t type, cudnnStatus_t& status);
  DnnDescriptor(DnnDescriptor&& other) noexcept;
  DnnDescriptor& operator=(DnnDescriptor&& other) noexcept;
  ~DnnDescriptor();

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
  void set(cudnnBackendAttributeName_t name, int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, bool value) { set(name, CUDNN_TYPE_BOOLEAN, 1, &value); }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) { set(name, CUDNN_TYPE_DATA_TYPE, 1, &value); }
  void set(cudnnBackendAttributeName_t name, const DnnDescriptor& value);
  void set(cudnnBackendAttributeName_t name, std::span<const int64_t> values);
  void finalize();
  cudnnBackendDescriptor_t get() const noexcept { return descriptor_; }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
  cudnnStatus_t* status_ = nullptr;
};

class DnnGraph {
 public:
  using Id = size_t;

  DnnGraph();
  DnnGraph(const DnnGraph&) = delete;
  DnnGraph& operator=(const DnnGraph&) = delete;

  // Memory that each run names, in the order of these calls; its address is a multiple of `alignment`.
  Id tensor(cudnnDataType_t type, std::span<const int64_t> sizes, std::span<const int64_t> strides,
            int64_t alignment = 16);
  // A number, the same in each run. `rank` dimensions of size 1.
  Id number(float value, size_t rank);
  // What operations hand on, row-major.
  Id between(cudnnDataType_t type, std::span<const int64_t> sizes);

  // All in float32, but for convolutions of float64.
  struct Convolution {
    cudnnDataType_t sums;
    std::span<const int64_t> padding, stride, dilation;
  };
  enum class Pass { kForward, kData, kFilter };
  // y is what a convolution with w makes of x; the pass computes y, x or w of the other two.
  void convolution(Pass pass, const Convolution& form, Id x, Id w, Id y);
  void matmul(Id a, Id b, Id c);
  void unary(cudnnPointwiseMode_t mode, Id x, Id y, cudnnDataType_t sums = CUDNN_DATA_FLOAT);
  void binary(cudnnPointwiseMode_t mode, Id x, Id b, Id y, cudnnDataType_t sums = CUDNN_DATA_FLOAT);
  void select(Id yes, Id no, Id condition, Id y);
  void positions(Id like, int64_t axis, Id y);  // of elements, along a dimension
  void reduce(cudnnReduceTensorOp_t operation, Id x, Id y);

  // For the handle's device, or for one that is described (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) and need not be there.
  cudnnStatus_t plan(cudnnHandle_t handle) { return plan(handle, nullptr); }
  cudnnStatus_t plan_for(const DnnDescriptor& device) { return plan(nullptr, &device); }
  // What plan() gave: CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING where a library that cuDNN opens itself
  // (libnvrtc, the driver) is all that is missing.
  cudnnStatus_t status() const noexcept { return status_; }
  size_t workspace() const noexcept { return workspace_; }

  // On the handle's stream.
  cudnnStatus_t run(cudnnHandle_t handle, std::span<void* const> memory, void* workspace);
  // Some plans only say when they run that they cannot: takes the next one, with a workspace of its own.
  cudnnStatus_t next(cudnnHandle_t handle);

 private:
  cudnnStatus_t plan(cudnnHandle_t handle, const DnnDescriptor* device);
  cudnnStatus_t take_next(cudnnHandle_t handle, const DnnDescriptor* device);
  DnnDescriptor& operation(cudnnBackendDescriptorType_t type);
  DnnDescriptor& part(cudnnBackendDescriptorType_t type);
  DnnDescriptor& pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t sums, int64_t axis);
  Id add(cudnnDataType_t type, std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t alignment,
         bool is_virtual, bool by_value);

  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;  // of the first step that failed
  std::vector<DnnDescriptor> tensors_;           // their unique ids are their places, from 1 on
  std::vector<int64_t> named_;                   // unique ids of memory_, then of number_ids_
  std::vector<Id> memory_;
  std::list<float> numbers_;
  std::vector<Id> number_ids_;
  std::list<DnnDescriptor> parts_, operations_;
  DnnDescriptor graph_, plan_;
  std::vector<DnnDescriptor> candidates_;  // engine configurations, the best first
  size_t candidate_ = 0;
  size_t workspace_ = 0;
  std::vector<void*> addresses_;
};

}  // namespace sconce::cuda
