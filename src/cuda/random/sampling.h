// Random operators that are called by name. Signatures follow src/cpu/random/sampling.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "sconce/tensor.h"
#include "src/operators/arguments.h"

namespace sconce::cuda {

// Waits to read the weights. Throws kUnsupported for several samples with replacement.
Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement, Generator* generator);
Tensor normal_tensor_number(const Tensor& mean, double std, Generator* generator);
Tensor normal_number_tensor(double mean, const Tensor& std, Generator* generator);
Tensor normal_tensors(const Tensor& mean, const Tensor& std, Generator* generator);
Tensor bernoulli(const Tensor& self, Generator* generator);
Tensor bernoulli_number(const Tensor& self, double p, Generator* generator);
Tensor bernoulli_tensor(const Tensor& self, const Tensor& p, Generator* generator);

Tensor normal_numbers(double mean, double std, IntSpan size, Generator* generator, OptType dtype, OptEnum layout,
                      OptDevice device, OptEnum pin_memory);

// Defined in random.cpp. The last two wait to read `high`, a tensor of one element.
Tensor randint_low_generator(int64_t low, int64_t high, IntSpan size, Generator* generator, OptType dtype,
                             OptEnum layout, OptDevice device, OptEnum pin_memory);
Tensor randint_like_low_generator(const Tensor& self, int64_t low, int64_t high, Generator* generator, OptType dtype,
                                  OptEnum layout, OptDevice device, OptEnum pin_memory, OptEnum memory_format);
Tensor randint_like_generator(const Tensor& self, int64_t high, Generator* generator, OptType dtype, OptEnum layout,
                              OptDevice device, OptEnum pin_memory, OptEnum memory_format);
Tensor randint_like_tensor_generator(const Tensor& self, const Tensor& high, Generator* generator, OptType dtype,
                                     OptEnum layout, OptDevice device, OptEnum pin_memory, OptEnum memory_format);
Tensor randint_like_tensor(const Tensor& self, const Tensor& high, OptType dtype, OptEnum layout, OptDevice device,
                           OptEnum pin_memory, OptEnum memory_format);

// Draw in two steps, as in src/custom_ops/aten/inductor_rows.cpp.
Tensor inductor_seed(Device device);
Tensor inductor_seeds(int64_t count, Device device);
Tensor inductor_random(IntSpan size, const Tensor& seed, std::string_view mode, OptType align_dtype);
Tensor inductor_randint(int64_t low, int64_t high, IntSpan size, const Tensor& seed);

}  // namespace sconce::cuda
