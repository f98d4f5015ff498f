// cuDNN's attention, for the tensors of a FlashAttention.
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <limits>

#include "src/cuda/attention/attention_graph.h"
#include "src/cuda/attention/flash/flash_attention.h"
#include "src/cuda/cudnn/dnn_lane.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"

namespace sconce::cuda {
namespace {

// cuDNN checks strides of dimensions of size 1 too.
void take_strides(const int64_t (&from)[3], int64_t batch, int64_t heads, int64_t tokens, int64_t d,
                  int64_t (&strides)[3]) {
  strides[2] = tokens == 1 ? d : from[2];
  strides[1] = heads == 1 ? strides[2] * tokens : from[1];
  strides[0] = batch == 1 ? std::max(strides[1] * heads, strides[2] * tokens) : from[0];
}

AttentionForm form_of(const FlashAttention& a, int dtype) {
  AttentionForm form{};
  form.type = dtype == 5 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;  // c10::ScalarType::Half
  form.batch = a.batch;
  form.heads = a.heads;
  form.kv_heads = a.kv_heads;
  form.queries = a.queries;
  form.keys = a.keys;
  form.d = a.d;
  form.dv = a.dv;
  take_strides(a.q_strides, a.batch, a.heads, a.queries, a.d, form.q_strides);
  take_strides(a.k_strides, a.batch, a.kv_heads, a.keys, a.d, form.k_strides);
  take_strides(a.v_strides, a.batch, a.kv_heads, a.keys, a.dv, form.v_strides);
  take_strides(a.out_strides, a.batch, a.heads, a.queries, a.dv, form.out_strides);
  form.logsumexp_rows = a.logsumexp_rows;
  form.scale = a.scale;
  form.causal = a.causal;
  form.biased = a.bias != nullptr;
  if (form.biased) {
    const int64_t sizes[] = {a.batch, a.heads, a.queries};
    for (size_t i = 0; i < 3; ++i) form.bias_strides[i] = sizes[i] == 1 ? 0 : a.bias_strides[i];
  }
  return form;
}

PlanKey key_of(const AttentionForm& form) {
  PlanKey key;
  key.add(-1);  // a dtype that no key of a convolution has
  for (const int64_t value :
       {int64_t{form.type}, form.batch, form.heads, form.kv_heads, form.queries, form.keys, form.d, form.dv,
        form.logsumexp_rows, int64_t{std::bit_cast<int32_t>(form.scale)}, int64_t{form.causal}, int64_t{form.biased}})
    key.add(value);
  for (const auto* strides : {&form.q_strides, &form.k_strides, &form.v_strides, &form.out_strides, &form.bias_strides})
    key.add(IntSpan(*strides));
  return key;
}

void say_what_is_missing() {
  static std::atomic_flag said;
  if (!said.test_and_set())
    std::fprintf(stderr,
                 "[WARNING] cuDNN cannot build its attention kernels (is libnvrtc missing?): using slower ones\n");
}

}  // namespace

bool launch_dnn_attention(const FlashAttention& a, int dtype, int device) {
  if (!try_dnn()) return false;
  const AttentionForm form = form_of(a, dtype);
  DnnLane& lane = dnn_lane(device);
  const std::shared_ptr<DnnGraph> graph = lane.graphs().get(key_of(form), [&] {
    std::shared_ptr<DnnGraph> made = attention_graph(form);
    made->plan(lane.handle());
    return made;
  });
  keep_for_graph(graph);
  void* memory[6] = {const_cast<void*>(a.q), const_cast<void*>(a.k), const_cast<void*>(a.v), a.out};
  size_t count = 4;
  if (form.biased) memory[count++] = const_cast<void*>(a.bias);
  if (form.logsumexp_rows > 0) memory[count++] = a.logsumexp;
  const cudnnStatus_t status = run_graph(lane, *graph, {DeviceType::kCuda, static_cast<int8_t>(device)},
                                         std::span<void* const>(memory).first(count));
  if (graph->status() == CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING) say_what_is_missing();
  if (status != CUDNN_STATUS_SUCCESS && graph->status() != CUDNN_STATUS_SUCCESS) return false;
  check_dnn(status, "attention");
  if (form.logsumexp_rows > a.queries) {
    const auto rows = static_cast<size_t>(form.logsumexp_rows);
    SCONCE_CUDA(cuMemsetD2D32Async(reinterpret_cast<CUdeviceptr>(a.logsumexp + a.queries), rows * sizeof(float),
                                   std::bit_cast<uint32_t>(std::numeric_limits<float>::infinity()),
                                   rows - static_cast<size_t>(a.queries),
                                   static_cast<size_t>(a.batch) * static_cast<size_t>(a.heads), current_stream()));
  }
  return true;
}

}  // namespace sconce::cuda
