#include "src/tensor/rules/moving_average.h"

#include <limits>
#include <string_view>

#include "sconce/check.h"
#include "src/tensor/fill.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/view.h"

namespace sconce {
namespace {
constexpr std::string_view kName = "_fused_moving_avg_obs_fq_helper";
}

FakeQuantisedRows check_moving_average(const Tensor& self, Tensor& running_min, Tensor& running_max, Tensor& scale,
                                       Tensor& zero_point, int64_t quant_min, int64_t quant_max, int64_t ch_axis,
                                       bool per_row_fake_quant) {
  SCONCE_CHECK(self.dtype() == DType::kFloat32, kUnsupported, kName, ": not implemented for '",
               dtype_name(self.dtype()), "'");
  SCONCE_CHECK(quant_min <= quant_max && quant_min <= 0 && quant_max >= 0 &&
                   quant_min >= std::numeric_limits<int32_t>::min() && quant_max <= std::numeric_limits<int32_t>::max(),
               kInvalidArgument, kName, ": quant_min ", quant_min, " and quant_max ", quant_max,
               " must enclose 0 and fit 32 bits");
  const int64_t axis = per_row_fake_quant ? wrap_dim(kName, ch_axis, self.dim()) : 0;
  const int64_t channels = per_row_fake_quant && self.dim() > 0 ? self.size(axis) : 1;
  SCONCE_CHECK(self.numel() > 0, kInvalidArgument, kName, ": self must not be empty");
  // Like ATen, gives observers that were never used a size.
  for (Tensor* t : {&running_min, &running_max, &scale, &zero_point}) {
    SCONCE_CHECK(t->dtype() == (t == &zero_point ? DType::kInt32 : DType::kFloat32), kInvalidArgument, kName,
                 ": running_min, running_max and scale must be float32, zero_point int32, got ", describe(*t));
    if (per_row_fake_quant && t->numel() == 0) {
      resize(*t, IntSpan(&channels, 1));
      if (t == &running_min) fill(*t, std::numeric_limits<double>::infinity());
      if (t == &running_max) fill(*t, -std::numeric_limits<double>::infinity());
    }
    SCONCE_CHECK(t->numel() == channels && t->is_contiguous(), kInvalidArgument, kName, ": expected ", channels,
                 " elements that lie together, got ", describe(*t));
  }
  FakeQuantisedRows rows{1, channels, 1, axis};
  for (int64_t d = axis + 1; per_row_fake_quant && d < self.dim(); ++d) rows.inner *= self.size(d);
  if (!per_row_fake_quant) rows.inner = self.numel();
  rows.outer = self.numel() / (channels * rows.inner);
  return rows;
}

}  // namespace sconce
