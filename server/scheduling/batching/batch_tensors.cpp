#include "server/scheduling/batching/batch_tensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sconce/check.h"
#include "sconce/device_memory.h"

namespace sconce::server::scheduling {
namespace {

// After this number of runs, memory is freed of which they used less than half.
constexpr int kRecent = 256;

}  // namespace

void BatchTensors::gather(std::span<QueuedRequest* const> requests) {
  const QueuedRequest& first = *requests.front();
  rows_ = 0;
  for (const QueuedRequest* request : requests) rows_ += request->rows;
  blocks_.resize(first.inputs.size());
  used_.resize(first.inputs.size());
  inputs_.clear();
  outputs_.resize(first.outputs.size());
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    const Tensor& example = first.inputs[i];
    if (!example.is_cpu()) {
      std::vector<Tensor> parts;
      for (const QueuedRequest* request : requests) parts.push_back(request->inputs[i]);
      inputs_.push_back(join_rows(parts, false));
      continue;
    }
    const size_t rank = static_cast<size_t>(example.dim());
    const size_t row_bytes = example.bytes() / static_cast<size_t>(first.rows);
    size_t bytes = 0;
    SCONCE_CHECK(!__builtin_mul_overflow(row_bytes, static_cast<size_t>(rows_), &bytes), kOutOfMemory,
                 "no memory for a batch of ", rows_, " rows");
    used_[i] = std::max(used_[i], bytes);
    StorageBlock& block = blocks_[i];
    block.prepare(bytes);
    std::byte* to = block.data();
    for (const QueuedRequest* request : requests) {
      const Tensor& part = request->inputs[i];
      std::memcpy(to, part.data(), part.bytes());
      to += part.bytes();
    }
    std::array<int64_t, Tensor::kMaxRank> sizes, strides;
    std::copy_n(example.sizes().begin(), rank, sizes.begin());
    std::copy_n(example.strides().begin(), rank, strides.begin());
    sizes[0] = rows_;
    strides[0] = example.numel() / first.rows;
    inputs_.emplace_back(block.storage(), example.dtype(), IntSpan{sizes.data(), rank}, IntSpan{strides.data(), rank});
  }
}

void BatchTensors::split(std::span<QueuedRequest* const> requests) {
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Tensor& whole = outputs_[k];
    if (!whole.defined()) continue;  // None
    SCONCE_CHECK(whole.layout() == Layout::kStrided && whole.dim() > 0 && whole.size(0) == rows_, kModelFailed,
                 "output ", k, " of a batch of ", rows_, " rows does not have a row for each: ", describe(whole));
    std::array<int64_t, Tensor::kMaxRank> sizes;
    const size_t rank = static_cast<size_t>(whole.dim());
    std::copy_n(whole.sizes().begin(), rank, sizes.begin());
    int64_t offset = whole.storage_offset();
    for (QueuedRequest* request : requests) {
      sizes[0] = request->rows;
      request->outputs[k] = whole.as_strided({sizes.data(), rank}, whole.strides(), offset);
      offset += request->rows * whole.stride(0);
    }
  }
}

void BatchTensors::clear() noexcept {
  for (Tensor& output : outputs_) output = Tensor();
  inputs_.clear();
  if (++runs_ < kRecent) return;
  runs_ = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].capacity() / 2 > used_[i]) blocks_[i].release();
    used_[i] = 0;
  }
}

void keep_outputs(std::span<Tensor> outputs) {
  for (Tensor& output : outputs) {
    if (!output.defined() || !output.is_cpu() || output.storage()->references() == 1) continue;
    Tensor copy = Tensor::empty(output.sizes(), output.dtype());
    copy_to_contiguous(output, static_cast<std::byte*>(copy.data()));
    output = std::move(copy);
  }
}

}  // namespace sconce::server::scheduling
