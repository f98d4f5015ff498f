// Random operators without a row in the C ABI. Match aten::multinomial, normal.*, bernoulli.*,
// rrelu_with_noise_functional, poisson, binomial,
// _standard_gamma, _sample_dirichlet, random.*, randint*, randperm (torch 2.15, CPU), to the bit for the same
// seed. A null generator is the default one.
#pragma once

#include <array>

#include "src/cpu/random/random.h"
#include "src/operators/arguments.h"
#include "src/tensor/scalar.h"

namespace sconce::cpu {

// self: [n] or [rows, n] of weights, floating. int64 positions [num_samples] or [rows, num_samples].
Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement, Generator* generator);
Tensor normal_tensor_number(const Tensor& mean, double std, Generator* generator);
Tensor normal_number_tensor(double mean, const Tensor& std, Generator* generator);
Tensor normal_tensors(const Tensor& mean, const Tensor& std, Generator* generator);
Tensor bernoulli(const Tensor& self, Generator* generator);
Tensor bernoulli_number(const Tensor& self, double p, Generator* generator);
Tensor bernoulli_tensor(const Tensor& self, const Tensor& p, Generator* generator);
// {result, noise}
std::array<Tensor, 2> rrelu_with_noise_functional(const Tensor& self, const Tensor& noise, Scalar lower, Scalar upper,
                                                  bool training, Generator* generator);

// Draws one number per element of self, which is its mean or shape. Row-major.
Tensor poisson(const Tensor& self, Generator* generator);
Tensor binomial(const Tensor& count, const Tensor& prob, Generator* generator);  // of one dtype; broadcast
Tensor _standard_gamma(const Tensor& self, Generator* generator);
Tensor _sample_dirichlet(const Tensor& self, Generator* generator);  // along the last dimension

// The rows of the C ABI for these operators take no generator.
Tensor randint_low_generator(int64_t low, int64_t high, IntSpan size, Generator* generator, OptType dtype,
                             OptEnum layout, OptDevice device, OptEnum pin_memory);
Tensor randint_like_low_generator(const Tensor& self, int64_t low, int64_t high, Generator* generator, OptType dtype,
                                  OptEnum layout, OptDevice device, OptEnum pin_memory, OptEnum memory_format);
Tensor randperm_generator(int64_t n, Generator* generator, OptType dtype, OptEnum layout, OptDevice device,
                          OptEnum pin_memory);

}  // namespace sconce::cpu
