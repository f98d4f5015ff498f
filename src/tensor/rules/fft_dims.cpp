#include "src/tensor/rules/fft_dims.h"

#include <algorithm>

#include "sconce/check.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

std::vector<int64_t> fft_dims(const char* name, const Tensor& self, IntSpan dim) {
  std::vector<int64_t> dims;
  for (const int64_t d : dim) {
    dims.push_back(wrap_dim(name, d, self.dim()));
    SCONCE_CHECK(std::count(dims.begin(), dims.end(), dims.back()) == 1, kInvalidArgument, name, ": dimension ", d,
                 " appears twice");
  }
  return dims;
}

}  // namespace sconce
