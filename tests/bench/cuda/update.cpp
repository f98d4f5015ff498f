// New weights of a CUDA package, from where they lie on the host to where runs use them, beside a plain copy of as many
// bytes from pinned memory; GB/s as JSON, the best of three.
//   bench_cuda_update PACKAGE
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>

#include "sconce/tensor_files.h"
#include "sconce/weight_sources.h"
#include "tests/bench/cuda/device.h"

using namespace sconce;

namespace {

double best_seconds(const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// GB/s of one cudaMemcpy from pinned memory; 0 where it failed.
double pinned_rate(size_t bytes) {
  void *host = nullptr, *device = nullptr;
  if (cudart("cudaMallocHost", &host, bytes) != 0 || cudart("cudaMalloc", &device, bytes) != 0) return 0;
  std::memset(host, 1, bytes);
  const double seconds = best_seconds([&] {
    cudart("cudaMemcpy", device, static_cast<const void*>(host), bytes, 1);
    cudart("cudaDeviceSynchronize");
  });
  cudart("cudaFree", device);
  cudart("cudaFreeHost", host);
  return static_cast<double>(bytes) / seconds / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: bench_cuda_update PACKAGE\n"), 2;
  LoadOptions options;
  options.devices = {{DeviceType::kCuda, 0}};
  const auto start = std::chrono::steady_clock::now();
  const auto model = Model::load(Package::open(argv[1]), options);
  const double load = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ConstantMap constants;
  std::vector<NamedTensor> tensors;
  size_t bytes = 0;
  for (const auto& [name, tensor] : model->extract_constants(Buffer::kActive)) {
    constants[name] = copy_to(tensor, Device{});
    tensors.push_back({name, constants[name]});
    bytes += constants[name].bytes();
  }
  const auto file = std::filesystem::temp_directory_path() / "bench_cuda_update.safetensors";
  write_safetensors(file, tensors);
  std::vector<Tensor> inputs, outputs(model->info().spec.outputs.size());
  for (const TensorSpec& spec : model->info().spec.inputs) inputs.push_back(input_of(spec, 1));
  const double run = best_seconds([&] { model->run(inputs, outputs); });
  // On the device when the first run has passed, at the latest.
  const double in_place = best_seconds([&] {
                            model->update_constants(Buffer::kInactive, constants, true, true);
                            model->swap_constants();
                            model->run(inputs, outputs);
                          }) -
                          run;
  const std::string digest = model->weights_digest(WeightState::kActive);
  double staging = 1e9;
  const double from_file = best_seconds([&] {
    const auto begin = std::chrono::steady_clock::now();
    auto update = model->begin_update({});
    stage_file(*update, file);
    staging = std::min(staging, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    update->finish();
    update.reset();
    model->commit_weights();
    model->release_previous();
  });
  if (model->weights_digest(WeightState::kActive) != digest)
    return std::fprintf(stderr, "the weights from the file are others\n"), 1;
  std::filesystem::remove(file);
  const auto rate = [&](double seconds) { return static_cast<double>(bytes) / seconds / 1e9; };
  std::printf(
      "{\"bytes\": %zu, \"pinned_gb_s\": %.1f, \"caller's_tensors_gb_s\": %.1f, \"safetensors_gb_s\": %.1f, "
      "\"staging_gb_s\": %.1f, \"load_gb_s\": %.1f, \"resident_mb\": %.0f}\n",
      bytes, pinned_rate(std::min(bytes, size_t{1} << 30)), rate(in_place), rate(from_file), rate(staging),
      rate(load), resident_mb());
}
