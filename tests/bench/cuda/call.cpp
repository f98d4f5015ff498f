// Calls of a CUDA package with tensors that stay on the device, as JSON: load and call times, memory.
//   bench_cuda_call PACKAGE [SIZE of dynamic dimensions]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "sconce/model.h"

using namespace sconce;
using Clock = std::chrono::steady_clock;

namespace {

double microseconds(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

// Megabytes of the process that are resident.
double resident() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::atof(line.c_str() + 6) / 1024;
  return 0;
}

Tensor input_of(const TensorSpec& spec, int64_t dynamic) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : spec.dims) sizes.push_back(dim.is_static() ? dim.min : std::clamp(dynamic, dim.min, dim.max));
  Tensor t = Tensor::empty(sizes, spec.dtype.value_or(DType::kFloat32));
  auto* bytes = static_cast<unsigned char*>(t.data());
  // Small positive numbers in any floating type: every byte but the exponent's is noise that does not matter.
  for (size_t i = 0; i < t.bytes(); ++i) bytes[i] = t.dtype() == DType::kFloat32 && i % 4 == 3 ? 0x3D : 0;
  const Device device = spec.device.value_or(Device{DeviceType::kCuda, 0});
  return device.type == DeviceType::kCpu ? t : copy_to(t, {DeviceType::kCuda, 0});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: bench_cuda_call PACKAGE [SIZE]\n"), 2;
  const auto start = Clock::now();
  LoadOptions options;
  options.devices = {{DeviceType::kCuda, 0}};
  options.host_outputs = false;
  const auto model = Model::load(Package::open(argv[1]), options);
  std::vector<Tensor> inputs;
  for (const TensorSpec& spec : model->info().spec.inputs)
    inputs.push_back(input_of(spec, argc > 2 ? std::atoll(argv[2]) : 8));
  std::vector<Tensor> outputs(model->info().spec.outputs.size());
  model->run(inputs, outputs);
  const double first = microseconds(Clock::now() - start);
  for (int i = 0; i < 200; ++i) model->run(inputs, outputs);
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) {
    const auto before = Clock::now();
    model->run(inputs, outputs);
    times.push_back(microseconds(Clock::now() - before));
  }
  std::sort(times.begin(), times.end());
  std::printf("{\"first_output_ms\": %.1f, \"call_us_p50\": %.2f, \"call_us_p99\": %.2f, \"resident_mb\": %.0f}\n",
              first / 1000, times[times.size() / 2], times[times.size() * 99 / 100], resident());
}
