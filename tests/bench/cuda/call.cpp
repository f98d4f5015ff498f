// Calls of a CUDA package with tensors that stay on the device, as JSON: load and call times, memory.
//   bench_cuda_call [--no-graphs] [--unchecked-indices] PACKAGE [SIZE of dynamic dimensions]
//   bench_cuda_call --throughput 0,1,... SECONDS PACKAGE     runs of one replica on each of these devices
//   bench_cuda_call --same PACKAGE          whether runs as CUDA graphs give the same outputs as runs without
//   bench_cuda_call --cycles N PACKAGE      loads, runs, updates weights and unloads N times; exits with 1 if memory of
//                                           the device or the process keeps growing
//   bench_cuda_call --memory PACKAGE        resident memory after a load and three runs, by mapped file
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sconce/device_memory.h"
#include "sconce/weight_sources.h"
#include "tests/bench/cuda/device.h"

using namespace sconce;
using Clock = std::chrono::steady_clock;

namespace {

double microseconds(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

int cycles(int count, const char* path) {
  LoadOptions options;
  options.devices = {{DeviceType::kCuda, 0}};
  // Measured after each tenth, without the first, in which caches fill.
  std::vector<double> device, host;
  for (int i = 1; i <= count; ++i) {
    const auto model = Model::load(Package::open(path), options);
    std::vector<Tensor> inputs, outputs(model->info().spec.outputs.size());
    for (const TensorSpec& spec : model->info().spec.inputs) inputs.push_back(input_of(spec, 8));
    model->run(inputs, outputs);
    std::vector<NamedTensor> constants;
    for (const auto& [name, tensor] : model->extract_constants(WeightState::kActive))
      constants.push_back({name, tensor});
    if (!constants.empty()) {
      const auto update = model->begin_update({.full = false});
      stage_tensors(*update, constants);
      update->finish();
      model->commit_weights();
    }
    model->run(inputs, outputs);
    if (i % std::max(count / 10, 1) != 0) continue;
    device.push_back(taken_mb());
    host.push_back(resident_mb());
  }
  // A leak grows in every tenth; another process that allocates during one of them does not count.
  const auto steady = [](const std::vector<double>& taken) {
    double least = taken.size() > 1 ? std::numeric_limits<double>::infinity() : 0;
    for (size_t i = 1; i < taken.size(); ++i) least = std::min(least, taken[i] - taken[i - 1]);
    return std::max(least, 0.0) * static_cast<double>(taken.empty() ? 0 : taken.size() - 1);
  };
  constexpr double kMost = 16;
  const bool leaks = steady(device) > kMost || steady(host) > kMost;
  std::printf(
      "{\"cycles\": %d, \"device_mb_grown\": %.1f, \"resident_mb_grown\": %.1f, \"device_mb_leaked\": %.1f, "
      "\"resident_mb_leaked\": %.1f}\n",
      count, device.back() - device.front(), host.back() - host.front(), steady(device), steady(host));
  return leaks ? 1 : 0;
}

// Runs from the host, as a server does, with one thread per device.
int throughput(const char* indices, double seconds, const char* path) {
  LoadOptions options;
  options.devices = devices_of(indices);
  if (options.devices.empty()) return std::fprintf(stderr, "devices are numbers such as 0,1\n"), 2;
  const size_t devices = options.devices.size();
  const auto model = Model::load(Package::open(path), options);
  std::vector<std::vector<Tensor>> outputs(devices);
  std::vector<int64_t> runs(devices);
  std::atomic<bool> go{false}, stop{false};
  std::vector<std::thread> threads;
  for (size_t at = 0; at < devices; ++at)
    threads.emplace_back([&, at] {
      std::vector<Tensor> inputs;
      for (const TensorSpec& spec : model->info().spec.inputs) inputs.push_back(copy_to(input_of(spec, 8), Device{}));
      std::vector<Tensor> own(model->info().spec.outputs.size());
      for (int warm = 0; warm < 50; ++warm) model->run(inputs, own);
      while (!go) std::this_thread::yield();
      int64_t mine = 0;  // a local count, because threads that write to one cache line slow each other down
      for (; !stop; ++mine) model->run(inputs, own);
      runs[at] = mine;
      outputs[at] = std::move(own);
    });
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const auto start = Clock::now();
  go = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const double taken = microseconds(Clock::now() - start) / 1e6;
  int64_t all = 0;
  for (const int64_t count : runs) all += count;
  bool same = true;
  for (const auto& one : outputs)
    for (size_t i = 0; i < one.size(); ++i)
      same &= one[i].defined() == outputs[0][i].defined() &&
              (!one[i].defined() || std::memcmp(one[i].data(), outputs[0][i].data(), one[i].bytes()) == 0);
  std::printf("{\"devices\": %zu, \"runs_per_second\": %.1f, \"same\": %s}\n", devices,
              static_cast<double>(all) / taken, same ? "true" : "false");
  return 0;
}

// Inputs that differ between turns: small numbers, and 0 or 1 for integer dtypes.
void vary(Tensor& t, uint32_t turn) {
  auto* bytes = static_cast<unsigned char*>(t.data());
  const size_t item = t.itemsize();
  uint32_t state = 12345 + turn;
  for (size_t i = 0; i < t.bytes(); ++i) {
    state = state * 1664525 + 1013904223;
    const bool first = i % item == 0, last = i % item == item - 1;
    if (is_floating(t.dtype()))
      bytes[i] = last ? (state >> 24 & 0x80) | (t.dtype() == DType::kFloat16 ? 0x34 : 0x3E) : state >> 24;
    else
      bytes[i] = first ? state >> 24 & 1 : 0;
  }
}

int same(const char* path) {
  LoadOptions options;
  options.devices = {{DeviceType::kCuda, 0}};
  options.cuda_graphs = 8;
  const auto graphs = Model::load(Package::open(path), options);
  options.cuda_graphs = 0;
  const auto plain = Model::load(Package::open(path), options);
  const size_t count = graphs->info().spec.outputs.size();
  int different = 0;
  for (uint32_t turn = 0; turn < 8; ++turn) {
    std::vector<Tensor> first(count), second(count);
    // Each model has its own: some write into their inputs.
    const auto inputs = [&] {
      std::vector<Tensor> made;
      for (const TensorSpec& spec : graphs->info().spec.inputs) {
        made.push_back(copy_to(input_of(spec, 8), Device{}));
        vary(made.back(), turn);
      }
      return made;
    };
    graphs->run(inputs(), first);
    plain->run(inputs(), second);
    for (size_t i = 0; i < count; ++i)
      different += first[i].defined() != second[i].defined() ||
                   (first[i].defined() && (first[i].bytes() != second[i].bytes() ||
                                           std::memcmp(first[i].data(), second[i].data(), first[i].bytes()) != 0));
  }
  const ReplicaInfo replica = graphs->replicas()[0];
  std::printf("%s, %d outputs of %zu differ, %llu runs as graphs%s%s\n", different ? "DIFFERENT" : "same", different,
              8 * count, static_cast<unsigned long long>(replica.graph_runs), replica.no_graphs.empty() ? "" : ": ",
              replica.no_graphs.c_str());
  return different ? 1 : 0;
}

// Megabytes per mapped file, or per kind of anonymous memory: all, and the part that is private to this process.
void print_memory(const char* when) {
  std::ifstream maps("/proc/self/smaps");
  std::map<std::string, std::pair<double, double>> by_name;
  std::string line, name;
  double all = 0;
  while (std::getline(maps, line)) {
    unsigned long first = 0, last = 0;
    int at = 0;
    char text[512] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %*s %n", &first, &last, &at) == 2 && at > 0) {
      name = line.substr(static_cast<size_t>(at));
      if (const size_t slash = name.rfind('/'); slash != std::string::npos) name.erase(0, slash + 1);
      if (name.empty()) name = "(anonymous)";
    } else if (long kb = 0; std::sscanf(line.c_str(), "%511[^:]: %ld kB", text, &kb) == 2) {
      if (std::string(text) == "Rss")
        by_name[name].first += static_cast<double>(kb) / 1024, all += static_cast<double>(kb) / 1024;
      if (std::string(text) == "Private_Dirty") by_name[name].second += static_cast<double>(kb) / 1024;
    }
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [file, mb] : by_name) order.emplace_back(mb.first, file);
  std::sort(order.rbegin(), order.rend());
  std::printf("%s: %.0f MB", when, all);
  for (size_t i = 0; i < std::min<size_t>(order.size(), 14); ++i)
    std::printf("%s%s %.1f (%.1f)", i ? ", " : "; resident (written): ", order[i].second.c_str(), order[i].first,
                by_name[order[i].second].second);
  std::printf("\n");
}

int memory(const char* path) {
  print_memory("start");
  LoadOptions options;
  options.devices = {{DeviceType::kCuda, 0}};
  { const Tensor first = copy_to(Tensor::empty({}, DType::kFloat32), options.devices[0]); }
  print_memory("context");
  const auto model = Model::load(Package::open(path), options);
  print_memory("loaded");
  std::vector<Tensor> inputs, outputs(model->info().spec.outputs.size());
  for (const TensorSpec& spec : model->info().spec.inputs) inputs.push_back(input_of(spec, 8));
  for (int i = 0; i < 3; ++i) model->run(inputs, outputs);
  print_memory("ran");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: bench_cuda_call PACKAGE [SIZE]\n"), 2;
  if (argc == 3 && std::string(argv[1]) == "--same") return same(argv[2]);
  if (argc == 3 && std::string(argv[1]) == "--memory") return memory(argv[2]);
  if (argc == 4 && std::string(argv[1]) == "--cycles") return cycles(std::max(std::atoi(argv[2]), 10), argv[3]);
  if (argc == 5 && std::string(argv[1]) == "--throughput") return throughput(argv[2], std::atof(argv[3]), argv[4]);
  const auto start = Clock::now();
  LoadOptions options;
  options.devices = {{DeviceType::kCuda, 0}};
  options.host_outputs = false;
  options.cuda_graphs = 8;
  for (; std::string_view(argv[1]).starts_with("--"); --argc, ++argv) {
    const std::string_view option = argv[1];
    if (option == "--no-graphs") options.cuda_graphs = 0;
    if (option == "--unchecked-indices") options.check_indices = false;
    if (argc < 3 || (option != "--no-graphs" && option != "--unchecked-indices")) return 2;
  }
  const auto model = Model::load(Package::open(argv[1]), options);
  const auto loaded = Clock::now();
  std::vector<Tensor> inputs;
  for (const TensorSpec& spec : model->info().spec.inputs)
    inputs.push_back(input_of(spec, argc > 2 ? std::atoll(argv[2]) : 8));
  std::vector<Tensor> outputs(model->info().spec.outputs.size());
  const auto made = Clock::now();  // a client has its inputs already: 64 MiB of made-up numbers take 0.2 s
  model->run(inputs, outputs);
  const double load = microseconds(loaded - start), first = load + microseconds(Clock::now() - made);
  std::vector<double> times;
  const auto repeat = [&](int most, double seconds) {
    times.clear();
    for (const auto end = Clock::now() + std::chrono::duration<double>(seconds);
         static_cast<int>(times.size()) < most && (times.size() < 5 || Clock::now() < end);) {
      const auto before = Clock::now();
      model->run(inputs, outputs);
      times.push_back(microseconds(Clock::now() - before));
    }
  };
  repeat(200, 0.3);
  repeat(2000, 1.5);
  std::sort(times.begin(), times.end());
  std::string shapes;  // the shapes for PyTorch's loader, as JSON
  for (const Tensor& input : inputs) {
    std::string sizes;
    for (const int64_t size : input.sizes()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    shapes += (shapes.empty() ? "[[" : ", [[") + sizes + "], \"" + std::string(dtype_name(input.dtype())) + "\", \"" +
              (input.is_cpu() ? "cpu" : "cuda") + "\"]";
  }
  std::printf(
      "{\"first_output_ms\": %.1f, \"load_ms\": %.1f, \"call_us_p50\": %.2f, \"call_us_p99\": %.2f, \"resident_mb\": "
      "%.0f, "
      "\"graphs\": \"%s\", \"inputs\": [%s]}\n",
      first / 1000, load / 1000, times[times.size() / 2], times[times.size() * 99 / 100], resident_mb(),
      model->replicas()[0].graph_runs > 0 ? "used" : model->replicas()[0].no_graphs.c_str(), shapes.c_str());
}
