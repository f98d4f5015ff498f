// Makes a model's inputs from files, or at random.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sconce/package.h"
#include "sconce/tensor.h"
#include "server/cli/command_line.h"

namespace sconce::server::cli {

struct InputOptions {
  std::vector<std::string> files;  // "NAME=FILE", or "FILE" with tensors named like the inputs
  std::vector<std::string> sizes;  // "SYMBOL=N", for random inputs
  uint64_t seed = 0;
  bool random_on_device = false;  // allows random inputs on a device
};

void add_input_options(CommandLine& app, InputOptions& options);
// kInvalidArgument for options that are wrong by themselves.
void check_input_options(const InputOptions& options);

// Tensors in flat order, with the strides that the package recorded. A .json file has an object of nested lists by
// name, or one nested list for NAME=FILE. Without files all inputs are random: floats from a normal distribution,
// integers 0 and 1, or values within the bounds of tables and divisors in the package's source (TensorSpec::values);
// sizes are those of --size or the smallest allowed ones that are at least 2. kInvalidArgument names the input.
std::vector<Tensor> make_inputs(const ModelSpec& spec, const InputOptions& options);

}  // namespace sconce::server::cli
