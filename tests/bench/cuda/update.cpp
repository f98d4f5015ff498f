// Updates the weights of a CUDA package from host memory and compares with a plain copy of as many bytes from pinned
// memory: GB/s as JSON, best of three. With several devices, the bytes count once however many devices get them; all
// must give the same answers before and after.
//   bench_cuda_update PACKAGE [0,1,...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>

#include "sconce/device_memory.h"
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

// GB/s of one cudaMemcpy from pinned memory; 0 if it failed.
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

// The answer of each replica to the same host inputs.
std::vector<std::vector<Tensor>> answers(Model& model) {
  std::vector<Tensor> inputs;
  for (const TensorSpec& spec : model.info().spec.inputs) inputs.push_back(copy_to(input_of(spec, 1), Device{}));
  std::vector<std::vector<Tensor>> of_replica(static_cast<size_t>(model.info().replicas));
  size_t missing = of_replica.size();
  for (uint64_t key = 1; missing > 0; ++key) {
    std::vector<Tensor> outputs(model.info().spec.outputs.size());
    auto& place = of_replica[static_cast<size_t>(model.run(inputs, outputs, key).replica)];
    if (!place.empty()) continue;
    place = std::move(outputs);
    --missing;
  }
  return of_replica;
}

bool alike(const std::vector<std::vector<Tensor>>& all, const std::vector<Tensor>& wanted) {
  for (const auto& outputs : all)
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i].defined() && std::memcmp(outputs[i].data(), wanted[i].data(), wanted[i].bytes()) != 0) return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  LoadOptions options;
  options.devices = devices_of(argc > 2 ? argv[2] : "0");
  if (argc < 2 || argc > 3 || options.devices.empty())
    return std::fprintf(stderr, "usage: bench_cuda_update PACKAGE [0,1,...]\n"), 2;
  const auto start = std::chrono::steady_clock::now();
  const auto model = Model::load(Package::open(argv[1]), options);
  const double load = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ConstantMap constants;
  std::vector<NamedTensor> tensors;
  size_t bytes = 0;
  for (const auto& [name, tensor] : model->extract_constants(WeightState::kActive)) {
    constants[name] = copy_to(tensor, Device{});
    tensors.push_back({name, constants[name]});
    bytes += constants[name].bytes();
  }
  const auto file = std::filesystem::temp_directory_path() / "bench_cuda_update.safetensors";
  write_safetensors(file, tensors);
  std::vector<Tensor> inputs, outputs(model->info().spec.outputs.size());
  for (const TensorSpec& spec : model->info().spec.inputs) inputs.push_back(input_of(spec, 1));
  const double run = best_seconds([&] { model->run(inputs, outputs); });
  // The first run ends only when the weights are on the device.
  const double from_host = best_seconds([&] {
                             const auto update = model->begin_update({});
                             stage_tensors(*update, tensors);
                             update->finish();
                             model->commit_weights();
                             model->run(inputs, outputs);
                           }) -
                           run;
  const auto before = answers(*model);
  const std::string digest = model->weights_digest(WeightState::kActive);
  double staging = 1e9, from_file = 1e9;  // until all is on the first device; until it is served
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto since = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
    auto update = model->begin_update({});
    stage_file(*update, file);
    staging = std::min(staging, since());
    update->finish();
    update.reset();
    model->commit_weights();
    from_file = std::min(from_file, since());
    model->release_previous();
  }
  if (model->weights_digest(WeightState::kActive) != digest)
    return std::fprintf(stderr, "the weights from the file are others\n"), 1;
  if (!alike(before, before[0]) || !alike(answers(*model), before[0]))
    return std::fprintf(stderr, "replicas answer differently\n"), 1;
  std::filesystem::remove(file);
  const auto rate = [&](double seconds) { return static_cast<double>(bytes) / seconds / 1e9; };
  std::printf(
      "{\"devices\": %zu, \"bytes\": %zu, \"pinned_gb_s\": %.1f, \"caller's_tensors_gb_s\": %.1f, "
      "\"safetensors_gb_s\": %.1f, "
      "\"staging_gb_s\": %.1f, \"load_gb_s\": %.1f, \"resident_mb\": %.0f}\n",
      options.devices.size(), bytes, pinned_rate(std::min(bytes, size_t{1} << 30)), rate(from_host), rate(from_file),
      rate(staging), rate(load), resident_mb());
}
