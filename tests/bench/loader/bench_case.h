// Shared by both loader benchmarks, which differ in the loader only.
//
// compare.py writes a file with the inputs: int64 count, then for each input int64 dtype number, rank, sizes, strides,
// offset (elements), storage bytes, and the bytes.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

struct Input {
  int64_t dtype = 0, offset = 0;
  std::vector<int64_t> sizes, strides;
  std::vector<char> bytes;
};

inline std::vector<Input> read_inputs(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const auto number = [&] {
    int64_t value = 0;
    if (!file.read(reinterpret_cast<char*>(&value), sizeof value)) throw std::runtime_error("inputs end early");
    return value;
  };
  std::vector<Input> inputs(static_cast<size_t>(number()));
  for (Input& input : inputs) {
    input.dtype = number();
    input.sizes.resize(static_cast<size_t>(number()));
    input.strides.resize(input.sizes.size());
    for (int64_t& size : input.sizes) size = number();
    for (int64_t& stride : input.strides) stride = number();
    input.offset = number();
    input.bytes.resize(static_cast<size_t>(number()));
    file.read(input.bytes.data(), static_cast<std::streamsize>(input.bytes.size()));
  }
  return inputs;
}

inline double now_ms() {  // CLOCK_MONOTONIC, as Python's time.monotonic
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline long resident_kb() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("VmRSS:", 0) == 0) return std::stol(line.substr(6));
  return 0;
}

// load() loads a package and replaces the last one, unload() drops it, run() runs it once. Prints one JSON line.
template <class Load, class Unload, class Run>
void measure(double seconds, const Load& load, const Unload& unload, const Run& run) {
  const double before = now_ms();
  load();
  const double loaded = now_ms();
  run();
  const double first = now_ms();
  const long resident = resident_kb();
  std::vector<double> calls;
  const double end = now_ms() + 1000 * seconds;
  for (int i = 0; i < 20; ++i) run();
  do {
    const double start = now_ms();
    run();
    calls.push_back(now_ms() - start);
  } while (now_ms() < end || calls.size() < 20);
  std::sort(calls.begin(), calls.end());
  const auto at = [&](double q) {
    return 1000 * calls[static_cast<size_t>(q * static_cast<double>(calls.size() - 1))];
  };
  std::vector<double> loads;  // the fastest tenth is reported, because other work on the machine slows many loads down
  for (int i = 0; i < 30; ++i) {
    unload();
    const double start = now_ms();
    load();
    loads.push_back(now_ms() - start);
  }
  std::sort(loads.begin(), loads.end());
  std::printf(
      "{\"load_ms\": %.4f, \"reload_ms\": %.4f, \"first_run_ms\": %.4f, \"first_output_at_ms\": %.4f, \"p50_us\": "
      "%.4f, \"p90_us\": %.4f, "
      "\"p99_us\": %.4f, \"calls\": %zu, \"resident_kb\": %ld}\n",
      loaded - before, loads[loads.size() / 10], first - loaded, first, at(0.5), at(0.9), at(0.99), calls.size(),
      resident);
}

// The same for packages whose calls take milliseconds. Prints one JSON line after the load and the first run. Then
// reads numbers of seconds from standard input; for each, runs so long and prints another line. So two programs can
// take turns.
template <class Load, class Run>
void take_turns(const Load& load, const Run& run) {
  const double before = now_ms();
  load();
  const double loaded = now_ms();
  run();
  const double first = now_ms();
  std::printf("{\"load_ms\": %.4f, \"first_run_ms\": %.4f, \"first_output_at_ms\": %.4f, \"resident_kb\": %ld}\n",
              loaded - before, first - loaded, first, resident_kb());
  std::fflush(stdout);
  for (double seconds; std::cin >> seconds;) {
    std::vector<double> calls;
    const double end = now_ms() + 1000 * seconds;
    do {
      const double start = now_ms();
      run();
      calls.push_back(1000 * (now_ms() - start));
    } while (now_ms() < end);
    std::sort(calls.begin(), calls.end());
    std::printf("{\"least_us\": %.4f, \"p50_us\": %.4f, \"calls\": %zu, \"resident_kb\": %ld}\n", calls.front(),
                calls[calls.size() / 2], calls.size(), resident_kb());
    std::fflush(stdout);
  }
}

}  // namespace bench
