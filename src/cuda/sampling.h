// Random operators that are called by name: signatures as src/ops/sampling.h has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sconce/tensor.h"
#include "src/ops/arguments.h"

namespace sconce::cuda {

// kUnsupported: several samples with replacement. Reads the weights, with a wait.
Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement, Generator* generator);
Tensor normal_tensor_number(const Tensor& mean, double std, Generator* generator);
Tensor normal_number_tensor(double mean, const Tensor& std, Generator* generator);
Tensor normal_tensors(const Tensor& mean, const Tensor& std, Generator* generator);
Tensor bernoulli(const Tensor& self, Generator* generator);
Tensor bernoulli_number(const Tensor& self, double p, Generator* generator);
Tensor bernoulli_tensor(const Tensor& self, const Tensor& p, Generator* generator);

// As src/custom_ops/inductor_rows.cpp has them: drawn twice.
Tensor inductor_seed(Device device);
Tensor inductor_seeds(int64_t count, Device device);
Tensor inductor_random(IntSpan size, const Tensor& seed, std::string_view mode, std::optional<DType> align_dtype);
Tensor inductor_randint(int64_t low, int64_t high, IntSpan size, const Tensor& seed);

}  // namespace sconce::cuda
