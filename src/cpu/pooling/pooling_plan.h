// Shared by all pooling kernels: windows, and packed memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sconce/float_types.h"
#include "src/tensor/spatial/pool_axes.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

// An input packed in one of two ways, [planes, D, H, W] or [batch, D, H, W, channels], and results packed alike.
struct PoolPlan {
  Tensor input;
  std::array<PoolAxis, 3> axes;  // depth, height, width
  bool channels_last = false;
  int64_t batch = 1, channels = 1;
  Shape sizes;  // of the results
  int64_t strides[5];
  Tensor window_table;  // of every axis, one after the other

  const PoolAxis::Window* windows(int axis) const {
    const auto* all = static_cast<const PoolAxis::Window*>(window_table.data());
    for (int a = 0; a < axis; ++a) all += axes[static_cast<size_t>(a)].output;
    return all;
  }
  int64_t planes() const { return batch * channels; }
  int64_t input_plane() const { return axes[0].input * axes[1].input * axes[2].input; }
  int64_t output_plane() const { return axes[0].output * axes[1].output * axes[2].output; }
  Tensor empty_result(DType dtype) const {
    return Tensor::empty_strided(sizes, {strides, static_cast<size_t>(sizes.rank())}, dtype);
  }
};

enum class PoolFormat {
  kSuggested,  // channels-last if the input's strides suggest it
  kRowMajor
};

// Packs the input, in `dtype`, and lays out the results.
PoolPlan plan_pooling(std::string_view name, const Tensor& self, const std::array<PoolAxis, 3>& axes, int pooled_dims,
                      PoolFormat format, DType dtype);

// Kernels. T: float, double, int64_t; int32_t (max only).
template <class T>
void max_pool(const PoolPlan& plan, T* out, int64_t* indices);
// divisor: 0 for the size of the window, else that number. include_padding: the window's size counts padding.
template <class T>
void average_pool(const PoolPlan& plan, T* out, bool include_padding, int64_t divisor);
// Row-major averages of Half or BFloat16 that are rounded after every step, as ATen's adaptive 3-D ones are.
template <class T>
void average_pool_rounded(const PoolPlan& plan, T* out);

}  // namespace sconce
