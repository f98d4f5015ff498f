// Makes inputs for a model, with the sizes and strides of its signature.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sconce/tensor.h"
#include "server/signature/interface.h"

namespace sconce::server {

// Chooses sizes for the symbols of a model.
class ProbeSizes {
 public:
  // A different size for each symbol, and other sizes with another shift.
  explicit ProbeSizes(int64_t shift) : shift_(shift) {}
  // `rows` for the batch and `others` for the rest, as far as their ranges permit; others 0: small, different sizes.
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

// Tensors of zeros, with at most `most` elements in all.
ProbeInputs make_probe_inputs(const ModelInterface& interface, ProbeSizes sizes, int64_t most);

}  // namespace sconce::server
