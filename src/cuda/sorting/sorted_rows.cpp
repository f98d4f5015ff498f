#include "src/cuda/sorting/sorted_rows.h"

#include "src/cuda/runtime/device_properties.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/sorting/sort_kernels.h"
#include "src/cuda/sorting/sorted_rows_kernels.h"

namespace sconce::cuda {

void check_sortable(const char* name, const Tensor& self) {
  SCONCE_CHECK(!is_complex(self.dtype()) && self.itemsize() <= 8, kUnsupported, name, ": not implemented for '",
               dtype_name(self.dtype()), "' on CUDA");
}

void sort_rows(const char* name, const Tensor& rows, const Tensor* labels, int64_t first, int64_t kept, bool descending,
               Tensor& values, Tensor& indices) {
  const int64_t length = rows.size(rows.dim() - 1);
  const SortCall call{static_cast<int>(rows.dtype()),
                      rows.data(),
                      labels ? labels->data_as<int64_t>() : nullptr,
                      rows.numel() / length,
                      length,
                      first,
                      kept,
                      descending,
                      values.data(),
                      indices.data_as<int64_t>()};
  with_scratch(name, rows.dtype(), rows.device(),
               [&](void* memory, size_t& bytes) { return launch_sort(memory, bytes, call, current_stream()); });
}

void select_rows(const char* name, const Tensor& rows, int64_t count, bool descending, bool last_only, Tensor& values,
                 Tensor& indices) {
  const int64_t length = rows.size(rows.dim() - 1);
  const SelectCall call{static_cast<int>(rows.dtype()),
                        rows.data(),
                        rows.numel() / length,
                        length,
                        count,
                        descending,
                        last_only,
                        values.data(),
                        indices.data_as<int64_t>(),
                        device_properties(rows.device().index).multiprocessors};
  with_scratch(name, rows.dtype(), rows.device(),
               [&](void* memory, size_t& bytes) { return launch_select(memory, bytes, call, current_stream()); });
}

void only_element(const Tensor& self, std::array<Tensor, 2>& out) {
  copy(self, out[0], false);
  const int64_t zero = 0;
  fill(out[1], &zero);
}

}  // namespace sconce::cuda
