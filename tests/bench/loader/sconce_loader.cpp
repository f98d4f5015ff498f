// Loads and runs a package through the public headers: PACKAGE INPUTS SECONDS.
#include <cstring>
#include <memory>
#include <optional>

#include "sconce/model.h"
#include "tests/bench/loader/bench_case.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
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
  bench::measure(
      std::stod(argv[3]),
      [&] {
        sconce::LoadOptions options;
        options.threads = 1;
        options.check_inputs = false;  // as PyTorch does by default
        model = sconce::Model::load(sconce::Package::open(argv[1]), options);
        outputs.resize(model->info().spec.outputs.size());
      },
      [&] {
        outputs.clear();
        model.reset();
      },
      [&] { model->run(tensors, outputs); });
}
