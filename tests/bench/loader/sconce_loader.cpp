// Loads and runs a package through the public headers: PACKAGE INPUTS SECONDS, or PACKAGE INPUTS turns THREADS.
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "sconce/model.h"
#include "tests/bench/loader/bench_case.h"

int main(int argc, char** argv) {
  const bool turns = argc == 5 && argv[3] == std::string_view("turns");
  if (argc != 4 && !turns) return 2;
  const auto inputs = bench::read_inputs(argv[2]);
  std::shared_ptr<sconce::Model> model;
  std::vector<sconce::Tensor> tensors, outputs;
  for (const bench::Input& input : inputs) {
    const int64_t bytes = static_cast<int64_t>(input.bytes.size());
    sconce::Tensor storage = sconce::Tensor::empty({&bytes, 1}, sconce::DType::kUInt8);
    if (bytes) std::memcpy(storage.data(), input.bytes.data(), input.bytes.size());
    const auto dtype = sconce::dtype_from_number(input.dtype).value();
    tensors.push_back(storage.view_as(dtype, input.sizes, input.strides, input.offset));
  }
  const auto load = [&] {
    sconce::LoadOptions options;
    options.threads = turns ? std::stoi(argv[4]) : 1;
    options.check_inputs = false;  // as PyTorch does by default
    model = sconce::Model::load(sconce::Package::open(argv[1]), options);
    outputs.resize(model->info().spec.outputs.size());
  };
  const auto unload = [&] {
    outputs.clear();
    model.reset();
  };
  const auto run = [&] { model->run(tensors, outputs); };
  if (turns)
    bench::take_turns(load, run);
  else
    bench::measure(std::stod(argv[3]), load, unload, run);
}
