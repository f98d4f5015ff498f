// Inputs of a model as the command line gives them: files, or random values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sconce/package.h"
#include "sconce/tensor.h"
#include "server/commands/command_line.h"

namespace sconce::server::commands {

struct InputOptions {
  std::vector<std::string> files;  // "NAME=FILE", or "FILE" whose tensors are named as the inputs
  std::vector<std::string> sizes;  // "SYMBOL=N", for random inputs
  uint64_t seed = 0;
};

void add_input_options(CommandLine& app, InputOptions& options);

// In flat order and in the strides that the package recorded; a .json file holds an object of nested lists by name, or
// for NAME=FILE one nested list. Without files every input is random: floats from a normal distribution, integers 0
// and 1 (safe as indices), sizes those of --size or the smallest that are allowed and not below 2.
// kInvalidArgument names the input.
std::vector<Tensor> make_inputs(const ModelSpec& spec, const InputOptions& options);

}  // namespace sconce::server::commands
