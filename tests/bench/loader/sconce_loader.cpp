// Loads and runs a package through the public headers: PACKAGE INPUTS SECONDS, PACKAGE INPUTS turns THREADS, or PACKAGE
// INPUTS values THREADS, which prints the outputs: for each, int64 dtype number, rank, sizes, and the elements in
// order.
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "sconce/model.h"
#include "tests/bench/loader/bench_case.h"

namespace {

void print_number(int64_t number) { std::fwrite(&number, sizeof number, 1, stdout); }

void print_elements(const sconce::Tensor& tensor, int64_t dim, int64_t offset) {
  if (dim == tensor.dim()) {
    const auto size = tensor.itemsize();
    std::fwrite(static_cast<const std::byte*>(tensor.data()) + offset * static_cast<int64_t>(size), size, 1, stdout);
    return;
  }
  for (int64_t i = 0; i < tensor.size(dim); ++i) print_elements(tensor, dim + 1, offset + i * tensor.stride(dim));
}

}  // namespace

int main(int argc, char** argv) {
  const bool turns = argc == 5 && argv[3] == std::string_view("turns");
  const bool values = argc == 5 && argv[3] == std::string_view("values");
  if (argc != 4 && !turns && !values) return 2;
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
    options.threads = turns || values ? std::stoi(argv[4]) : 1;
    options.check_inputs = false;  // as PyTorch does by default
    model = sconce::Model::load(sconce::Package::open(argv[1]), options);
    outputs.resize(model->info().spec.outputs.size());
  };
  const auto unload = [&] {
    outputs.clear();
    model.reset();
  };
  const auto run = [&] { model->run(tensors, outputs); };
  if (values) {
    load();
    run();
    for (const sconce::Tensor& output : outputs) {
      print_number(static_cast<int64_t>(output.dtype()));
      print_number(output.dim());
      for (const int64_t size : output.sizes()) print_number(size);
      print_elements(output, 0, 0);
    }
  } else if (turns)
    bench::take_turns(load, run);
  else
    bench::measure(std::stod(argv[3]), load, unload, run);
}
