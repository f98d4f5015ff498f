// DnnGraph: operations of cuDNN's graph interface (cuDNN 9), planned once and run many times. Its plans cost the host
// less per run than cuDNN's older functions, and only it has attention.
//
//   DnnGraph graph;
//   const auto x = graph.tensor(CUDNN_DATA_HALF, sizes, strides), ...;
//   graph.convolution(...);
//   if (graph.plan(handle) == CUDNN_STATUS_SUCCESS) graph.run(handle, {x's address, ...}, workspace);
//
// For one thread at a time. Nothing throws: status() keeps the error of the first step that failed.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
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

  // Memory that the caller passes to each run, in the order of these calls. Addresses are multiples of `alignment`.
  Id tensor(cudnnDataType_t type, std::span<const int64_t> sizes, std::span<const int64_t> strides,
            int64_t alignment = 16);
  // A number that stays the same for all runs, as a tensor of `rank` dimensions of size 1.
  Id number(float value, size_t rank);
  // A row-major intermediate result.
  Id between(cudnnDataType_t type, std::span<const int64_t> sizes);

  // Sums are in float32, except that convolutions of float64 use float64.
  struct Convolution {
    cudnnDataType_t sums;
    std::span<const int64_t> padding, stride, dilation;
  };
  enum class Pass { kForward, kData, kFilter };
  // y is the convolution of x with w; the pass computes y, x or w from the other two.
  void convolution(Pass pass, const Convolution& form, Id x, Id w, Id y);
  void matmul(Id a, Id b, Id c);
  void unary(cudnnPointwiseMode_t mode, Id x, Id y, cudnnDataType_t sums = CUDNN_DATA_FLOAT);
  void binary(cudnnPointwiseMode_t mode, Id x, Id b, Id y, cudnnDataType_t sums = CUDNN_DATA_FLOAT);
  void select(Id yes, Id no, Id condition, Id y);
  void positions(Id like, int64_t axis, Id y);  // of elements along a dimension
  void reduce(cudnnReduceTensorOp_t operation, Id x, Id y);

  // plan_for() plans for a device that is only described (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) and may be absent.
  cudnnStatus_t plan(cudnnHandle_t handle) { return plan(handle, nullptr); }
  cudnnStatus_t plan_for(const DnnDescriptor& device) { return plan(nullptr, &device); }
  // The result of plan(). CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING means that only a library which cuDNN
  // opens itself (libnvrtc, the driver) is missing.
  cudnnStatus_t status() const noexcept { return status_; }
  size_t workspace() const noexcept { return workspace_; }

  // Runs on the handle's stream.
  cudnnStatus_t run(cudnnHandle_t handle, std::span<void* const> memory, void* workspace);
  // Some plans refuse only when they run. Switches to the next plan, which has its own workspace size.
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
  std::vector<DnnDescriptor> tensors_;           // unique ids are indices plus 1
  std::vector<int64_t> named_;                   // unique ids of memory_, then of number_ids_
  std::vector<Id> memory_;
  std::list<float> numbers_;
  std::vector<Id> number_ids_;
  std::list<DnnDescriptor> parts_, operations_;
  DnnDescriptor graph_, plan_;
  std::vector<DnnDescriptor> candidates_;  // engine configurations, best first
  size_t candidate_ = 0;
  size_t workspace_ = 0;
  std::vector<void*> addresses_;
};

}  // namespace sconce::cuda
