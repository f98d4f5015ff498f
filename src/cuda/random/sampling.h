// Random operators that are called by name: signatures as src/cpu/random/sampling.h has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sconce/tensor.h"
#include "src/operators/arguments.h"

namespace sconce::cuda {

// kUnsupported: several samples with replacement. Reads the weights, with a wait.
Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement, Generator* generator);
Tensor normal_tensor_number(const Tensor& mean, double std, Generator* generator);
Tensor normal_number_tensor(double mean, const Tensor& std, Generator* generator);
Tensor normal_tensors(const Tensor& mean, const Tensor& std, Generator* generator);
Tensor bernoulli(const Tensor& self, Generator* generator);
Tensor bernoulli_number(const Tensor& self, double p, Generator* generator);
Tensor bernoulli_tensor(const Tensor& self, const Tensor& p, Generator* generator);

Tensor normal_numbers(double mean, double std, IntSpan size, Generator* generator, std::optional<DType> dtype,
                      std::optional<int32_t> layout, std::optional<Device> device, std::optional<int32_t> pin_memory);

// Of random.cpp; high of the last two: a tensor of one element, which is read, with a wait.
Tensor randint_low_generator(int64_t low, int64_t high, IntSpan size, Generator* generator, std::optional<DType> dtype,
                             std::optional<int32_t> layout, std::optional<Device> device,
                             std::optional<int32_t> pin_memory);
Tensor randint_like_low_generator(const Tensor& self, int64_t low, int64_t high, Generator* generator,
                                  std::optional<DType> dtype, std::optional<int32_t> layout,
                                  std::optional<Device> device, std::optional<int32_t> pin_memory,
                                  std::optional<int32_t> memory_format);
Tensor randint_like_generator(const Tensor& self, int64_t high, Generator* generator, std::optional<DType> dtype,
                              std::optional<int32_t> layout, std::optional<Device> device,
                              std::optional<int32_t> pin_memory, std::optional<int32_t> memory_format);
Tensor randint_like_tensor_generator(const Tensor& self, const Tensor& high, Generator* generator,
                                     std::optional<DType> dtype, std::optional<int32_t> layout,
                                     std::optional<Device> device, std::optional<int32_t> pin_memory,
                                     std::optional<int32_t> memory_format);
Tensor randint_like_tensor(const Tensor& self, const Tensor& high, std::optional<DType> dtype,
                           std::optional<int32_t> layout, std::optional<Device> device,
                           std::optional<int32_t> pin_memory, std::optional<int32_t> memory_format);

// As src/custom_ops/aten/inductor_rows.cpp has them: drawn twice.
Tensor inductor_seed(Device device);
Tensor inductor_seeds(int64_t count, Device device);
Tensor inductor_random(IntSpan size, const Tensor& seed, std::string_view mode, std::optional<DType> align_dtype);
Tensor inductor_randint(int64_t low, int64_t high, IntSpan size, const Tensor& seed);

}  // namespace sconce::cuda
