// Planes of an input for kernels that compute vectors of outputs along a row.
#pragma once

#include <algorithm>

#include "src/cpu/pooling/pooling_plan.h"
#include "src/cpu/vector/pooling_lanes.h"
#include "src/device/threads.h"

namespace sconce {

// Minimum elements of work per thread.
constexpr int64_t kPooledPerThread = 32768;

// Calls body(rows, pitch, plane) for every row-major plane. Rows include their padding, `filler`, and are long enough
// for a vector of outputs. They are read in place if that needs no copy.
template <class T, class F>
void for_padded_planes(const PoolPlan& plan, T filler, const F& body) {
  const auto& [depth, height, width] = plan.axes;
  const int64_t planes = plan.planes(), in_plane = plan.input_plane(), rows = depth.input * height.input;
  const int64_t outputs = std::max<int64_t>(width.output, PoolLanes<T>::kLanes);
  const int64_t needed = (outputs - 1) * width.stride + (width.kernel - 1) * width.dilation + 1;
  const bool copied = width.padding > 0 || needed > width.input;
  const int64_t pitch = copied ? needed : width.input, elements = copied ? rows * pitch : 0;
  const int64_t inside = std::min(width.input, pitch - width.padding);
  const int64_t workers =
      std::clamp<int64_t>(planes * in_plane / kPooledPerThread, 1, std::min<int64_t>(kernel_threads(), planes));
  const int64_t scratch_elements = workers * elements;
  const Tensor scratch = Tensor::empty(IntSpan(&scratch_elements, 1), kDType<T>);
  const T* const input = plan.input.data_as<T>();
  parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t worker = begin; worker < end; ++worker) {
      T* const copy = scratch.data_as<T>() + worker * elements;
      std::fill_n(copy, elements, filler);
      for (int64_t p = planes * worker / workers; p < planes * (worker + 1) / workers; ++p) {
        const T* const from = input + p * in_plane;
        if (copied)
          for (int64_t row = 0; row < rows; ++row)
            std::copy_n(from + row * width.input, inside, copy + row * pitch + width.padding);
        body(copied ? copy : from, pitch, p);
      }
    }
  });
}

}  // namespace sconce
