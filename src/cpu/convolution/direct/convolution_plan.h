// The key of convolution plans.
#pragma once

#include <array>
#include <cstdint>

#include "src/cpu/convolution/direct/convolution_operands.h"
#include "src/cpu/onednn/plan_table.h"

namespace sconce {

// All values that a plan depends on, as a row of numbers.
class PlanKey {
 public:
  // Shape, strides, dtypes and fusion. Addresses do not count, except whether fusion.other is the output.
  PlanKey(const ConvolutionShape& shape, const ConvolutionOperands& operands, const ActivationView& output) noexcept;
  uint64_t hash() const noexcept;
  friend bool operator==(const PlanKey&, const PlanKey&) noexcept = default;

 private:
  std::array<int64_t, 56> words_;
};

}  // namespace sconce
