// Loads and runs a package by PyTorch's C++ loader: PACKAGE INPUTS SECONDS, or PACKAGE INPUTS turns THREADS.
#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <memory>
#include <string_view>

#include "tests/bench/loader/bench_case.h"

int main(int argc, char** argv) {
  const bool turns = argc == 5 && argv[3] == std::string_view("turns");
  if (argc != 4 && !turns) return 2;
  at::set_num_threads(turns ? std::stoi(argv[4]) : 1);
  const c10::InferenceMode guard;
  auto inputs = bench::read_inputs(argv[2]);
  std::unique_ptr<torch::inductor::AOTIModelPackageLoader> loader;
  std::vector<at::Tensor> tensors;
  for (bench::Input& input : inputs) {
    const auto options = at::TensorOptions().dtype(static_cast<at::ScalarType>(input.dtype));
    const int64_t elements = static_cast<int64_t>(input.bytes.size() / options.dtype().itemsize());
    tensors.push_back(at::from_blob(input.bytes.data(), {elements}, options)
                          .clone()
                          .as_strided(input.sizes, input.strides, input.offset));
  }
  const auto load = [&] {
    loader = std::make_unique<torch::inductor::AOTIModelPackageLoader>(argv[1], "model", /*run_single_threaded=*/true);
  };
  const auto run = [&] { loader->run(tensors); };
  if (turns)
    bench::take_turns(load, run);
  else
    bench::measure(
        std::stod(argv[3]), load, [&] { loader.reset(); }, run);
}
