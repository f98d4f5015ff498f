// Inputs made up for a model, of the sizes and strides that its signature asks for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sconce/tensor.h"
#include "server/signature/interface.h"

namespace sconce::server {

// Sizes for the symbols of a model.
class ProbeSizes {
 public:
  // Different for each symbol, and all different with another shift.
  explicit ProbeSizes(int64_t shift) : shift_(shift) {}
  // `rows` for the batch; the others `others` as far as their ranges permit, or small and different if it is 0.
  ProbeSizes(std::string batch, int64_t rows, int64_t others) : others_(others), sizes_{{std::move(batch), rows}} {}

  int64_t of(const Dim& dim, const std::string& key);

 private:
  int64_t shift_ = 0, others_ = 0;
  std::map<std::string, int64_t> sizes_;
};

struct ProbeInputs {
  enum class Problem : int8_t { kNone, kNotDescribed, kTooLarge };
  Problem problem = Problem::kNone;
  size_t at = 0;  // the input that has the problem
  std::vector<Tensor> tensors;
  int64_t batch = 0;  // size of the batch dimension; 0: there is none
};

// Tensors of zeros, of no more than `most` elements together.
ProbeInputs make_probe_inputs(const ModelInterface& interface, ProbeSizes sizes, int64_t most);

}  // namespace sconce::server
