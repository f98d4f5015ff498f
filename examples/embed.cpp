// Loads a package and runs it once. In CMake: find_package(sconce), target_link_libraries(... sconce::sconce).
#include <algorithm>
#include <cstdio>
#include <vector>

#include "sconce/error.h"
#include "sconce/model.h"

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: embed PACKAGE\n"), 2;
  const auto model = sconce::Model::load(sconce::Package::open(argv[1]));

  std::vector<sconce::Tensor> inputs, outputs(model->info().spec.outputs.size());
  for (const sconce::TensorSpec& spec : model->info().spec.inputs) {
    std::vector<int64_t> sizes;
    for (const sconce::Dim& dim : spec.dims) sizes.push_back(std::max<int64_t>(dim.min, 1));
    inputs.push_back(sconce::Tensor::empty(sizes, spec.dtype.value()));
    if (spec.dtype == sconce::DType::kFloat32) std::fill_n(inputs.back().data_as<float>(), inputs.back().numel(), 1.f);
  }

  const sconce::RunInfo info = model->run(inputs, outputs);
  for (const sconce::Tensor& output : outputs) std::printf("%s\n", sconce::describe(output).c_str());
  std::printf("%.1f us\n", static_cast<double>(info.compute.count()) / 1e3);
} catch (const sconce::Error& error) {
  return std::fprintf(stderr, "embed: %s\n", error.what()), 1;
}
