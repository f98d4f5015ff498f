#include "server/scheduling/decoding/row_tensors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sconce/check.h"
#include "server/scheduling/batching/batch_tensors.h"

namespace sconce::server::scheduling {

RowTensors::RowTensors(const ModelSignature& model, const LoopPlan& plan)
    : model_(model), plan_(plan), blocks_(model.inputs.size()), outputs_(model.outputs.size()) {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const std::vector<int64_t>& sizes = plan.row_inputs[i];
    const DType dtype = *model.inputs[i].dtype;
    std::vector<int64_t> strides(sizes.size());
    contiguous_strides(sizes, strides.data());
    blocks_[i].prepare(std::max<size_t>(storage_bytes_needed(sizes, strides, 0, dtype_bytes(dtype)), 1));
    inputs_.emplace_back(blocks_[i].storage(), dtype, sizes, strides);
  }
  for (int64_t row = 0; row < plan.rows; ++row) fill_idle(static_cast<size_t>(row));
}

void RowTensors::check(const ModelSignature& model, const LoopPlan& plan, std::span<const Tensor> row) {
  for (const size_t i : plan.given) {
    const std::vector<int64_t>& sizes = plan.row_inputs[i];
    const Tensor& tensor = row[i];
    SCONCE_CHECK(tensor.is_cpu() && tensor.dtype() == *model.inputs[i].dtype &&
                     tensor.dim() == static_cast<int64_t>(sizes.size()) && tensor.size(0) == 1 &&
                     std::equal(sizes.begin() + 1, sizes.end(), tensor.sizes().begin() + 1) && tensor.is_contiguous(),
                 kInvalidArgument, "input '", model.input_names.name(i), "' must be one row of ",
                 dtype_name(*model.inputs[i].dtype), " ", to_string(sizes), ", got ", describe(tensor));
  }
}

Tensor RowTensors::row_of(size_t input, size_t row) const {
  const Tensor& all = inputs_[input];
  std::array<int64_t, Tensor::kMaxRank> sizes;
  std::copy(all.sizes().begin(), all.sizes().end(), sizes.begin());
  sizes[0] = 1;
  return all.as_strided({sizes.data(), all.sizes().size()}, all.strides(), static_cast<int64_t>(row) * all.stride(0));
}

void RowTensors::fill(size_t row, std::span<const Tensor> inputs) noexcept {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const size_t bytes = inputs_[i].bytes() / static_cast<size_t>(plan_.rows);
    if (bytes > 0) std::memcpy(blocks_[i].data() + row * bytes, inputs[i].data(), bytes);
  }
}

void RowTensors::fill_idle(size_t row) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const size_t bytes = inputs_[i].bytes() / static_cast<size_t>(plan_.rows);
    if (bytes > 0) std::memset(blocks_[i].data() + row * bytes, 0, bytes);
  }
  if (plan_.count) {
    const Tensor position = row_of(plan_.count->input, row);
    position.dtype() == DType::kInt32 ? void(*position.data_as<int32_t>() = static_cast<int32_t>(plan_.count->from))
                                      : void(*position.data_as<int64_t>() = plan_.count->from);
  }
  for (const ControlInput& control : model_.controls) fill_control_idle(control, row_of(control.input, row));
}

void RowTensors::keep() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Tensor& output = outputs_[i];
    const bool in_rows =
        output.defined() && output.layout() == Layout::kStrided && output.dim() > 0 && output.size(0) == plan_.rows;
    SCONCE_CHECK(in_rows || i != plan_.logits_output, kModelFailed, "output '", model_.output_names.name(i),
                 "' does not have a row of logits for each of ", plan_.rows,
                 " loops: ", output.defined() ? describe(output) : "it is None");
    if (!in_rows) output = Tensor();
  }
  keep_outputs(outputs_);
}

void RowTensors::show(size_t row, std::span<Tensor> outputs) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Tensor& all = outputs_[i];
    if (!all.defined()) {
      outputs[i] = Tensor();
      continue;
    }
    std::array<int64_t, Tensor::kMaxRank> sizes;
    std::copy(all.sizes().begin(), all.sizes().end(), sizes.begin());
    sizes[0] = 1;
    outputs[i] = all.as_strided({sizes.data(), all.sizes().size()}, all.strides(),
                                all.storage_offset() + static_cast<int64_t>(row) * all.stride(0));
  }
}

}  // namespace sconce::server::scheduling
