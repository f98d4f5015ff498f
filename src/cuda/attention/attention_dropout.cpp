#include "src/cuda/attention/attention.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/stream.h"
#include "src/device/philox.h"

namespace sconce::cuda {
namespace {

AttentionDropout drawn(const char* name, double p, AttentionDropout::Stream stream, int64_t heads) {
  SCONCE_CHECK(p >= 0 && p <= 1, kInvalidArgument, name, ": dropout_p ", p, " is not between 0 and 1");
  AttentionDropout dropout;
  if (p == 0) return dropout;
  SCONCE_CHECK(p < 1 || stream == AttentionDropout::Stream::kElements, kInvalidArgument, name,
               ": dropout_p must be less than 1");
  dropout.stream = stream;
  dropout.p = static_cast<float>(p);
  dropout.heads = heads;
  return dropout;
}

void reserve(AttentionDropout& dropout, int64_t count) {
  if (dropout.stream == AttentionDropout::Stream::kNone) return;
  refuse_capture("random numbers");
  const PhiloxGenerator::State state = philox_generator(current().device).reserve(static_cast<uint64_t>(count));
  dropout.seed = state.seed;
  dropout.offset = state.offset;
}

// Element i of a tensor of 64-bit numbers, on any device.
uint64_t number_in(const char* name, const Tensor& t, int64_t i) {
  SCONCE_CHECK(t.defined() && t.numel() > i && t.itemsize() == 8, kInvalidArgument, name,
               ": the state of its random numbers is ", t.defined() ? describe(t) : "missing");
  if (t.is_cpu()) return static_cast<uint64_t>(t.data_as<int64_t>()[i]);
  Tensor here = Tensor::empty({}, t.dtype());
  copy(t.as_strided({}, {}, t.storage_offset() + i), here, true);
  return static_cast<uint64_t>(*here.data_as<int64_t>());
}

}  // namespace

AttentionDropout draw_flash_dropout(const char* name, double p, int64_t batch, int64_t heads) {
  AttentionDropout dropout = drawn(name, p, AttentionDropout::Stream::kBlocks, heads);
  reserve(dropout, batch * heads * 32);
  return dropout;
}

AttentionDropout draw_efficient_dropout(const char* name, double p, int64_t count, int64_t heads, int64_t queries,
                                        int64_t keys) {
  AttentionDropout dropout = drawn(name, p, AttentionDropout::Stream::kElements, heads);
  dropout.head_elements = queries * keys;
  dropout.row_elements = keys;
  reserve(dropout, count);
  return dropout;
}

AttentionDropout flash_dropout(const char* name, double p, int64_t heads, const Tensor& state) {
  AttentionDropout dropout = drawn(name, p, AttentionDropout::Stream::kBlocks, heads);
  if (dropout.stream == AttentionDropout::Stream::kNone) return dropout;
  dropout.seed = number_in(name, state, 0);
  dropout.offset = number_in(name, state, 1);
  return dropout;
}

AttentionDropout efficient_dropout(const char* name, double p, int64_t heads, int64_t queries, int64_t keys,
                                   const Tensor& seed, const Tensor& offset) {
  AttentionDropout dropout = drawn(name, p, AttentionDropout::Stream::kElements, heads);
  if (dropout.stream == AttentionDropout::Stream::kNone) return dropout;
  dropout.head_elements = queries * keys;
  dropout.row_elements = keys;
  dropout.seed = number_in(name, seed, 0);
  dropout.offset = number_in(name, offset, 0);
  return dropout;
}

Tensor flash_state(const AttentionDropout& dropout, Device device) {
  const int64_t two = 2;
  Tensor state = Tensor::empty(IntSpan(&two, 1), DType::kUInt64, device);
  if (dropout.stream == AttentionDropout::Stream::kNone) return state;
  Tensor seed = state.as_strided({}, {}, 0), offset = state.as_strided({}, {}, 1);
  fill(seed, &dropout.seed);
  fill(offset, &dropout.offset);
  return state;
}

EfficientState efficient_state(const AttentionDropout& dropout, Device device) {
  EfficientState state{Tensor::empty({}, DType::kInt64, device), Tensor::empty({}, DType::kInt64, device)};
  if (dropout.stream == AttentionDropout::Stream::kNone) return state;
  fill(state.seed, &dropout.seed);
  fill(state.offset, &dropout.offset);
  return state;
}

}  // namespace sconce::cuda
