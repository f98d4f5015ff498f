#include "src/cpu/indexing/byte_embedding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "sconce/check.h"
#include "src/device/threads.h"
#include "src/tensor/copy.h"

namespace sconce::cpu {
namespace {

constexpr int64_t kTail = 8;  // float32 scale, float32 offset

struct Step {
  float scale, offset;
};

Step step_of(const uint8_t* row, int64_t width) noexcept {
  Step step;
  std::memcpy(&step, row + width, sizeof step);
  return step;
}

Tensor table(const char* name, const Tensor& weight) {
  SCONCE_CHECK(weight.dtype() == DType::kUInt8 && weight.dim() >= 1 && weight.size(weight.dim() - 1) >= kTail,
               kInvalidArgument, name, ": expected a uint8 table of rows with their scale and offset, got ",
               describe(weight));
  return contiguous(weight);
}

std::vector<int64_t> widened(const Tensor& weight, int64_t by) {
  std::vector<int64_t> sizes(weight.sizes().begin(), weight.sizes().end());
  sizes.back() += by;
  return sizes;
}

Tensor integers(const char* name, const char* what, const Tensor& tensor) {
  SCONCE_CHECK(tensor.dtype() == DType::kInt32 || tensor.dtype() == DType::kInt64, kInvalidArgument, name, ": expect ",
               what, " of 32 or 64 bit integers, got ", dtype_name(tensor.dtype()));
  return contiguous(to_dtype(tensor, DType::kInt64));
}

}  // namespace

Tensor embedding_bag_byte_prepack(const Tensor& weight) {
  constexpr const char* kName = "embedding_bag_byte_prepack";
  SCONCE_CHECK((weight.dtype() == DType::kFloat32 || weight.dtype() == DType::kFloat16) && weight.dim() >= 1,
               kInvalidArgument, kName, ": 'embedding_bag_byte_prepack' only support float32 or float16, got ",
               describe(weight));
  const Tensor from = contiguous(to_dtype(weight, DType::kFloat32));
  Tensor packed = Tensor::empty(widened(weight, kTail), DType::kUInt8);
  const int64_t width = weight.size(weight.dim() - 1), rows = packed.numel() / (width + kTail);
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = from.data_as<float>() + r * width;
    uint8_t* to = packed.data_as<uint8_t>() + r * (width + kTail);
    const float least = width ? *std::min_element(x, x + width) : 0, most = width ? *std::max_element(x, x + width) : 0;
    const float range = most - least, inverse = 255.0f / (range + 1e-8f);
    for (int64_t i = 0; i < width; ++i) to[i] = static_cast<uint8_t>(std::lrintf((x[i] - least) * inverse));
    const Step step{range / 255.0f, least};
    std::memcpy(to + width, &step, sizeof step);
  }
  return packed;
}

Tensor embedding_bag_byte_unpack(const Tensor& weight) {
  const Tensor from = table("embedding_bag_byte_unpack", weight);
  Tensor values = Tensor::empty(widened(weight, -kTail), DType::kFloat32);
  const int64_t width = weight.size(weight.dim() - 1) - kTail, rows = from.numel() / (width + kTail);
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* x = from.data_as<uint8_t>() + r * (width + kTail);
    const Step step = step_of(x, width);
    for (int64_t i = 0; i < width; ++i)
      values.data_as<float>()[r * width + i] = static_cast<float>(x[i]) * step.scale + step.offset;
  }
  return values;
}

Tensor embedding_bag_byte_rowwise_offsets(const Tensor& weight, const Tensor& indices, const Tensor* offsets, bool,
                                          int64_t, bool pruned_weights, const Tensor* per_sample_weights,
                                          const Tensor* compressed_indices_mapping, bool include_last_offset) {
  constexpr const char* kName = "embedding_bag_byte_rowwise_offsets";
  const Tensor rows = table(kName, weight), wanted = integers(kName, "indices", indices);
  SCONCE_CHECK(rows.dim() == 2, kInvalidArgument, kName, ": expected a matrix, got ", describe(weight));
  SCONCE_CHECK(indices.dim() == 1 || indices.dim() == 2, kInvalidArgument, kName,
               ": qembedding/qembedding_bag operator supports 1 or 2d indices, got ", indices.dim());
  const int64_t count = wanted.numel(), width = rows.size(1) - kTail;

  std::vector<int64_t> ends;  // of each bag
  std::vector<int64_t> starts;
  if (indices.dim() == 2) {
    SCONCE_CHECK(!offsets, kInvalidArgument, kName,
                 ": embedding_bag operator: input is 2D, then offsets has to be None, as input is treated is a "
                 "mini-batch of fixed length sequences.");
    for (int64_t b = 0; b < indices.size(0); ++b) {
      starts.push_back(b * indices.size(1));
      ends.push_back((b + 1) * indices.size(1));
    }
  } else {
    SCONCE_CHECK(offsets && offsets->dim() == 1, kInvalidArgument, kName,
                 ": embedding_bag_byte operator expects offsets to be set for 1D indices.");
    const Tensor from = integers(kName, "offsets", *offsets);
    const int64_t* at = from.data_as<int64_t>();
    const int64_t bags = from.numel() - (include_last_offset ? 1 : 0);
    for (int64_t b = 0; b < bags; ++b) {
      starts.push_back(at[b]);
      ends.push_back(b + 1 < from.numel() ? at[b + 1] : count);
      SCONCE_CHECK(starts.back() >= 0 && starts.back() <= ends.back() && ends.back() <= count, kInvalidArgument, kName,
                   ": offsets are not those of ", count, " indices: bag ", b, " is from ", starts.back(), " to ",
                   ends.back());
    }
  }

  Tensor factors;
  if (per_sample_weights) {
    SCONCE_CHECK(per_sample_weights->dtype() == DType::kFloat32 && per_sample_weights->numel() == count,
                 kInvalidArgument, kName, ": expected a float32 weight for each of ", count, " indices, got ",
                 describe(*per_sample_weights));
    factors = contiguous(*per_sample_weights);
  }
  Tensor mapping;
  if (pruned_weights && compressed_indices_mapping && compressed_indices_mapping->numel() > 1)
    mapping = integers(kName, "compressed_indices_mapping", *compressed_indices_mapping);
  std::vector<int64_t> chosen(wanted.data_as<int64_t>(), wanted.data_as<int64_t>() + count);
  for (int64_t& index : chosen) {
    const int64_t known = mapping.defined() ? mapping.numel() : rows.size(0);
    SCONCE_CHECK(index >= 0 && index < known, kInvalidArgument, kName, ": index ", index, " is out of range [0, ",
                 known, ")");
    if (!mapping.defined()) continue;
    index = mapping.data_as<int64_t>()[index];
    SCONCE_CHECK(index >= -1 && index < rows.size(0), kInvalidArgument, kName, ": the mapping's row ", index,
                 " is out of range");
  }

  const int64_t sizes[2] = {static_cast<int64_t>(starts.size()), width};
  Tensor sums = Tensor::empty(sizes, DType::kFloat32);
  const uint8_t* const data = rows.data_as<uint8_t>();
  const float* const factor = factors.defined() ? factors.data_as<float>() : nullptr;
  parallel_for(0, sizes[0], 16, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t b = begin; b < end; ++b) {
      float* const to = sums.data_as<float>() + b * width;
      std::fill(to, to + width, 0.f);
      for (int64_t i = starts[static_cast<size_t>(b)]; i < ends[static_cast<size_t>(b)]; ++i) {
        const int64_t index = chosen[static_cast<size_t>(i)];
        if (index < 0) continue;
        const uint8_t* const row = data + index * (width + kTail);
        Step step = step_of(row, width);
        if (factor) {
          step.scale *= factor[i];
          step.offset *= factor[i];
        }
        for (int64_t j = 0; j < width; ++j) to[j] += static_cast<float>(row[j]) * step.scale + step.offset;
      }
    }
  });
  return sums;
}

}  // namespace sconce::cpu
