// Products of inputs that are quantised to 8 bits on the way with weights of 4 bits. Matches
// aten::_dyn_quant_pack_4bit_weight and _dyn_quant_matmul_4bit, torch 2.15, as they are on x86.
#include <algorithm>
#include <cmath>

#include "sconce/check.h"
#include "src/cpu/vector/post_ops.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"

namespace sconce::cpu {
namespace {

constexpr int64_t kProductsPerThread = 500'000;

void check_shape(const char* name, int64_t block, int64_t k, int64_t n) {
  SCONCE_CHECK(k > 0 && n >= 0 && k % 2 == 0, kInvalidArgument, name, ": in_features [", k,
               "] must be even, out_features [", n, "] not negative");
  SCONCE_CHECK(block == k || (block > 0 && block % 32 == 0 && k % block == 0), kInvalidArgument, name,
               ": Group size should be multiple of 32, in_features [", k, "]. Provided ", block);
}

// values[k] as int8 with one scale and zero point, less the zero point; returns the scale back.
float quantise(const float* values, int32_t* to, int64_t k) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < k; ++i) {
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  const float scale = low == high ? 1.0f : 255.0f / (high - low);
  const float back = scale != 0 ? 1.0f / scale : 0.0f, low_scaled = low * scale, high_scaled = high * scale;
  const float by_low = -128.0f + low_scaled, by_high = 127.0f + high_scaled;
  const float exact = by_low + by_high > 0 ? -128.0f - low_scaled : 127.0f - high_scaled;
  const auto zero = static_cast<int32_t>(std::lrintf(std::clamp(exact, -128.0f, 127.0f)));
  for (int64_t i = 0; i < k; ++i) {
    // Numbers beyond these bounds are clamped below anyway. NaN becomes the least number.
    const float rounded = std::round(std::clamp(values[i] * scale, -1024.0f, 1024.0f));
    const int32_t q = rounded == rounded ? static_cast<int32_t>(rounded) + zero : -128;
    to[i] = std::clamp(q, -128, 127) - zero;
  }
  return back;
}

}  // namespace

// weights uint8 [N, K / 2], two elements a byte, the even one in the low nibble; scales_zeros [N, K / block_size] and
// bias [N] of any floating dtype. Packed: float32, one after the other: the bytes' values, the scales, the bias.
Tensor _dyn_quant_pack_4bit_weight(const Tensor& weights, const Tensor& scales_zeros, const Tensor* bias,
                                   int64_t block_size, int64_t in_features, int64_t out_features) {
  constexpr const char* kName = "_dyn_quant_pack_4bit_weight_cpu";
  SCONCE_CHECK(weights.dtype() == DType::kUInt8, kInvalidArgument, kName, " : expect weight to be kByte., got ",
               dtype_name(weights.dtype()));
  check_shape(kName, block_size, in_features, out_features);
  const Tensor* parts[3] = {&weights, &scales_zeros, bias};
  int64_t count = 0;
  for (const Tensor* part : parts) count += part ? part->numel() : 0;
  Tensor packed = Tensor::empty({&count, 1}, DType::kFloat32);
  int64_t at = 0;
  for (const Tensor* part : parts) {
    if (!part) continue;
    const int64_t one = 1, elems = part->numel();
    Tensor values = contiguous(*part);
    Tensor to = packed.as_strided({&elems, 1}, {&one, 1}, at);
    copy(values.as_strided({&elems, 1}, {&one, 1}, values.storage_offset()), to);
    at += elems;
  }
  return packed;
}

// inp [M, in_features] float32, or bfloat16 where one block is the whole row: [M, out_features] of its dtype. A row is
// quantised with one scale and zero point; an element of the weight is (nibble - 8) * scale.
Tensor _dyn_quant_matmul_4bit(const Tensor& inp, const Tensor& packed_weights, int64_t block_size, int64_t in_features,
                              int64_t out_features) {
  constexpr const char* kName = "_dyn_quant_matmul_4bit_cpu";
  check_shape(kName, block_size, in_features, out_features);
  const int64_t k = in_features, n = out_features, blocks = k / block_size;
  const bool whole = blocks == 1;
  SCONCE_CHECK(inp.dtype() == DType::kFloat32 || (whole && inp.dtype() == DType::kBFloat16), kInvalidArgument, kName,
               " : expect input to be float32 or bfloat16 tensor., got ", dtype_name(inp.dtype()), " with ", blocks,
               " blocks a row");
  SCONCE_CHECK(inp.dim() == 2 && inp.size(1) == k, kInvalidArgument, kName, " : expect input [M, ", k, "], got ",
               describe(inp));
  const int64_t scale_at = n * k / 2, bias_at = scale_at + n * blocks, length = packed_weights.numel();
  SCONCE_CHECK(packed_weights.dtype() == DType::kFloat32 && packed_weights.is_contiguous() &&
                   (length == bias_at || length == bias_at + n),
               kInvalidArgument, kName, " : expect packed weights of ", bias_at, " or, with a bias, ", bias_at + n,
               " values, got ", describe(packed_weights));
  const int64_t m = inp.size(0), sizes[2] = {m, n};
  Tensor out = Tensor::empty(sizes, inp.dtype());
  if (out.numel() == 0) return out;
  const Tensor x = contiguous(to_dtype(inp, DType::kFloat32));
  const int64_t quantised_sizes[2] = {m, k}, row_sizes[1] = {m};
  Tensor quantised = Tensor::empty(quantised_sizes, DType::kInt32), back = Tensor::empty(row_sizes, DType::kFloat32);
  for (int64_t i = 0; i < m; ++i)
    back.data_as<float>()[i] = quantise(x.data_as<float>() + i * k, quantised.data_as<int32_t>() + i * k, k);

  Tensor sums = Tensor::empty(sizes, DType::kFloat32);
  const float* const packed = packed_weights.data_as<float>();
  const float* const bias = length > bias_at ? packed + bias_at : nullptr;
  const int64_t grain = std::max<int64_t>(1, kProductsPerThread / std::max<int64_t>(1, m * k));
  parallel_for(0, n, grain, [&](int64_t begin, int64_t end) noexcept {
    int32_t w[2 * 16];
    for (int64_t j = begin; j < end; ++j) {
      float* const to = sums.data_as<float>() + j;
      for (int64_t i = 0; i < m; ++i) to[i * n] = 0;
      for (int64_t b = 0; b < blocks; ++b) {
        const float scale = packed[scale_at + j * blocks + b];
        const int64_t first = b * block_size;
        for (int64_t i = 0; i < m; ++i) {
          const int32_t* q = quantised.data_as<int32_t>() + i * k + first;
          int32_t sum = 0;
          for (int64_t p = 0; p < block_size; p += 32) {
            const int64_t count = std::min<int64_t>(16, (block_size - p) / 2);
            const float* bytes = packed + (j * k + first + p) / 2;
            for (int64_t c = 0; c < count; ++c) {
              const auto byte = static_cast<int32_t>(bytes[c]);
              w[2 * c] = (byte & 15) - 8;
              w[2 * c + 1] = (byte >> 4 & 15) - 8;
            }
            for (int64_t c = 0; c < 2 * count; ++c) sum += q[p + c] * w[c];
          }
          to[i * n] += static_cast<float>(sum) * scale;
        }
      }
      for (int64_t i = 0; i < m; ++i) {
        to[i * n] *= back.data_as<float>()[i];
        if (bias) to[i * n] += bias[j];
      }
    }
  });
  scatter_floats(sums.data_as<float>(), out.dtype(), out.data(), 1, m * n);
  return out;
}

}  // namespace sconce::cpu
