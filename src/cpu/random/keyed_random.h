// Random numbers determined by a key: Philox 4x32 with 10 rounds. A key is uint64 [..., 2]: a seed, and the counter of
// the first block of four words. Match aten::_philox_key_split, _philox_key_fold_in, _philox_uniform, _philox_normal
// and _philox_randint (torch 2.15, CPU), to the bit except for the last digits of the normal ones.
#pragma once

#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

Tensor _philox_key_split(const Tensor& key, int64_t num_splits);  // [num_splits, *key]
Tensor _philox_key_fold_in(const Tensor& key, int64_t data);
Tensor _philox_key_fold_in_tensor(const Tensor& key, const Tensor& data);  // uint64, one element

// Results have self's sizes, dtype and strides. The key is [2], or [*batch, 2] with a dimension for each of self's, of
// equal size or 1: one key covers the elements of all dimensions after its last dimension that is not 1.
Tensor _philox_uniform(const Tensor& self, const Tensor& key, double low, double high);
Tensor _philox_normal(const Tensor& self, const Tensor& key, double mean, double std);
// Integers of [low, high); the dtype's whole range if a bound is not given.
Tensor _philox_randint(const Tensor& self, const Tensor& key, std::optional<int64_t> low, std::optional<int64_t> high);

}  // namespace sconce::cpu
