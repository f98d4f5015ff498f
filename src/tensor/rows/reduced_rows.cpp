#include "src/tensor/rows/reduced_rows.h"

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

ReducedRows reduced_rows(std::string_view name, const Tensor& self, std::optional<IntSpan> dims, bool keepdim,
                         DType dtype) {
  std::vector<bool> reduced(static_cast<size_t>(self.dim()), !dims || dims->empty());
  for (const int64_t d : dims.value_or(IntSpan())) {
    const auto at = static_cast<size_t>(wrap_dim(name, d, self.dim()));
    if (self.dim() == 0) continue;
    SCONCE_CHECK(!reduced[at], kInvalidArgument, name, ": dim ", d, " appears multiple times in the list of dims");
    reduced[at] = true;
  }
  ReducedRows result;
  std::vector<int64_t> order;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (!reduced[static_cast<size_t>(d)]) order.push_back(d);
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (reduced[static_cast<size_t>(d)]) {
      order.push_back(d);
      result.width *= self.size(d);
    }
    if (!reduced[static_cast<size_t>(d)] || keepdim)
      result.sizes.push_back(reduced[static_cast<size_t>(d)] ? 1 : self.size(d));
  }
  result.rows = contiguous(cpu::permute(to_dtype(self, dtype), order));
  return result;
}

}  // namespace sconce
