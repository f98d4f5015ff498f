#include "src/cuda/cudnn/dnn_graph.h"

#include <string_view>
#include <utility>

namespace sconce::cuda {

namespace {

// If cuDNN offers no engine, only the text of its last error tells why.
cudnnStatus_t why_none() {
  std::vector<char> text(16384);
  cudnnGetLastErrorString(text.data(), text.size() - 1);
  return std::string_view(text.data()).find("PREREQUISITE_MISSING") != std::string_view::npos
             ? CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING
             : CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace

DnnDescriptor::DnnDescriptor(cudnnBackendDescriptorType_t type, cudnnStatus_t& status) : status_(&status) {
  const cudnnStatus_t made = cudnnBackendCreateDescriptor(type, &descriptor_);
  if (made != CUDNN_STATUS_SUCCESS && status == CUDNN_STATUS_SUCCESS) status = made;
}
DnnDescriptor::DnnDescriptor(DnnDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, nullptr)), status_(other.status_) {}
DnnDescriptor& DnnDescriptor::operator=(DnnDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(status_, other.status_);
  return *this;
}
DnnDescriptor::~DnnDescriptor() {
  if (descriptor_) cudnnBackendDestroyDescriptor(descriptor_);
}

void DnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                        const void* values) {
  if (*status_ == CUDNN_STATUS_SUCCESS) *status_ = cudnnBackendSetAttribute(descriptor_, name, type, count, values);
}
void DnnDescriptor::set(cudnnBackendAttributeName_t name, const DnnDescriptor& value) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
}
void DnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
  set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
}
void DnnDescriptor::finalize() {
  if (*status_ == CUDNN_STATUS_SUCCESS) *status_ = cudnnBackendFinalize(descriptor_);
}

DnnGraph::DnnGraph() { tensors_.reserve(32); }

DnnGraph::Id DnnGraph::add(cudnnDataType_t type, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                           int64_t alignment, bool is_virtual, bool by_value) {
  const Id id = tensors_.size();
  DnnDescriptor& t = tensors_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR, status_);
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  t.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<int64_t>(id) + 1);
  t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
  t.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, by_value);
  t.finalize();
  return id;
}

DnnGraph::Id DnnGraph::tensor(cudnnDataType_t type, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                              int64_t alignment) {
  return memory_.emplace_back(add(type, sizes, strides, alignment, false, false));
}

DnnGraph::Id DnnGraph::number(float value, size_t rank) {
  const std::vector<int64_t> ones(rank, 1);
  numbers_.push_back(value);
  return number_ids_.emplace_back(add(CUDNN_DATA_FLOAT, ones, ones, 16, false, true));
}

DnnGraph::Id DnnGraph::between(cudnnDataType_t type, std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
  return add(type, sizes, strides, 16, true, false);
}

DnnDescriptor& DnnGraph::operation(cudnnBackendDescriptorType_t type) {
  return operations_.emplace_back(type, status_);
}
DnnDescriptor& DnnGraph::part(cudnnBackendDescriptorType_t type) { return parts_.emplace_back(type, status_); }

void DnnGraph::convolution(Pass pass, const Convolution& form, Id x, Id w, Id y) {
  DnnDescriptor& how = part(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  how.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, form.sums);
  how.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  how.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(form.padding.size()));
  how.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, form.padding);
  how.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, form.padding);
  how.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, form.stride);
  how.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, form.dilation);
  how.finalize();
  struct Names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t form, x, w, y, alpha, beta;
  };
  static constexpr Names kNames[] = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
  const Names& names = kNames[static_cast<int>(pass)];
  DnnDescriptor& op = operation(names.type);
  op.set(names.form, how);
  op.set(names.x, tensors_[x]);
  op.set(names.w, tensors_[w]);
  op.set(names.y, tensors_[y]);
  const double one64 = 1, none64 = 0;
  const float one32 = 1, none32 = 0;
  if (form.sums == CUDNN_DATA_DOUBLE) {
    op.set(names.alpha, CUDNN_TYPE_DOUBLE, 1, &one64);
    op.set(names.beta, CUDNN_TYPE_DOUBLE, 1, &none64);
  } else {
    op.set(names.alpha, CUDNN_TYPE_FLOAT, 1, &one32);
    op.set(names.beta, CUDNN_TYPE_FLOAT, 1, &none32);
  }
  op.finalize();
}

void DnnGraph::matmul(Id a, Id b, Id c) {
  DnnDescriptor& how = part(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  how.finalize();
  DnnDescriptor& op = operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensors_[a]);
  op.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensors_[b]);
  op.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensors_[c]);
  op.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
  op.finalize();
}

DnnDescriptor& DnnGraph::pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t sums, int64_t axis) {
  DnnDescriptor& how = part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, sums);
  if (axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  how.finalize();
  DnnDescriptor& op = operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  return op;
}
void DnnGraph::unary(cudnnPointwiseMode_t mode, Id x, Id y, cudnnDataType_t sums) {
  DnnDescriptor& op = pointwise(mode, sums, -1);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[x]);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[y]);
  op.finalize();
}
void DnnGraph::binary(cudnnPointwiseMode_t mode, Id x, Id b, Id y, cudnnDataType_t sums) {
  DnnDescriptor& op = pointwise(mode, sums, -1);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[x]);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_[b]);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[y]);
  op.finalize();
}
void DnnGraph::select(Id yes, Id no, Id condition, Id y) {
  DnnDescriptor& op = pointwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[yes]);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_[no]);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensors_[condition]);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[y]);
  op.finalize();
}
void DnnGraph::positions(Id like, int64_t axis, Id y) {
  DnnDescriptor& op = pointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[like]);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[y]);
  op.finalize();
}

void DnnGraph::reduce(cudnnReduceTensorOp_t operation, Id x, Id y) {
  DnnDescriptor& how = part(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operation);
  how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  how.finalize();
  DnnDescriptor& op = this->operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
  op.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensors_[x]);
  op.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensors_[y]);
  op.finalize();
}

cudnnStatus_t DnnGraph::plan(cudnnHandle_t handle, const DnnDescriptor* device) {
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const DnnDescriptor& op : operations_) operations.push_back(op.get());
  graph_ = DnnDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, status_);
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(operations.size()),
             operations.data());
  if (handle) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  graph_.finalize();
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (status_ != CUDNN_STATUS_SUCCESS) break;
    cudnnStatus_t asked = CUDNN_STATUS_SUCCESS;
    DnnDescriptor advice(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, asked);
    advice.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_);
    advice.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (device) advice.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device);
    advice.finalize();
    int64_t count = 0;
    if (asked == CUDNN_STATUS_SUCCESS)
      asked = cudnnBackendGetAttribute(advice.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                       &count, nullptr);
    std::vector<DnnDescriptor> results;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (int64_t i = 0; asked == CUDNN_STATUS_SUCCESS && i < count; ++i)
      raw.push_back(results.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, asked).get());
    if (asked == CUDNN_STATUS_SUCCESS && count > 0)
      asked = cudnnBackendGetAttribute(advice.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                       count, &count, raw.data());
    for (size_t i = 0; asked == CUDNN_STATUS_SUCCESS && i < static_cast<size_t>(count); ++i)
      candidates_.push_back(std::move(results[i]));
  }
  if (status_ == CUDNN_STATUS_SUCCESS) status_ = candidates_.empty() ? why_none() : take_next(handle, device);
  for (const Id id : memory_) named_.push_back(static_cast<int64_t>(id) + 1);
  for (const Id id : number_ids_) named_.push_back(static_cast<int64_t>(id) + 1);
  addresses_.resize(memory_.size());
  for (float& value : numbers_) addresses_.push_back(&value);
  return status_;
}

cudnnStatus_t DnnGraph::take_next(cudnnHandle_t handle, const DnnDescriptor* device) {
  cudnnStatus_t refused = CUDNN_STATUS_NOT_SUPPORTED;
  for (; candidate_ < candidates_.size(); ++candidate_) {
    cudnnStatus_t made = CUDNN_STATUS_SUCCESS;
    DnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, made);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, candidates_[candidate_]);
    if (handle) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    if (device) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *device);
    plan.finalize();
    int64_t bytes = 0, count = 0;
    if (made == CUDNN_STATUS_SUCCESS)
      made = cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                      &bytes);
    if (made == CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING) refused = made;
    if (made != CUDNN_STATUS_SUCCESS) continue;
    plan_ = std::move(plan);
    workspace_ = static_cast<size_t>(bytes);
    ++candidate_;
    return CUDNN_STATUS_SUCCESS;
  }
  return refused;
}

cudnnStatus_t DnnGraph::next(cudnnHandle_t handle) { return status_ = take_next(handle, nullptr); }

cudnnStatus_t DnnGraph::run(cudnnHandle_t handle, std::span<void* const> memory, void* workspace) {
  if (memory.size() != memory_.size()) return CUDNN_STATUS_BAD_PARAM;
  for (size_t i = 0; i < memory.size(); ++i) addresses_[i] = memory[i];
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  DnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, status);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(addresses_.size()),
           addresses_.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, named_);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  return status == CUDNN_STATUS_SUCCESS ? cudnnBackendExecute(handle, plan_.get(), pack.get()) : status;
}

}  // namespace sconce::cuda
