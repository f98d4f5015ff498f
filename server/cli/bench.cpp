#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <future>
#include <iostream>
#include <memory>
#include <optional>

#include "sconce/check.h"
#include "sconce/model.h"
#include "sconce/random.h"
#include "sconce/version.h"
#include "server/cli/bench_report.h"
#include "server/cli/command.h"
#include "server/cli/load_settings.h"
#include "server/cli/model_inputs.h"
#include "server/cli/tried_inputs.h"
#include "server/support/json_document.h"
#include "server/support/terminal/text.h"
#include "server/support/time_text.h"

namespace sconce::server::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
  LoadSettings load;
  InputOptions inputs;
  std::vector<int> replicas{1}, threads{0};
  int callers = 0;  // 0: number of replicas
  double duration_s = 3;
  bool json = false;
  std::string html, against;  // files
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Memory of this process: private pages, and its share of shared pages.
uint64_t proportional_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("Pss:")) return std::stoull(line.substr(4)) * 1024;
  return 0;
}

// Times of single runs, in seconds.
struct Samples {
  std::vector<float> times;
  double elapsed_s = 0;
  // Nearest-rank percentile.
  double percentile(double p) {
    const auto rank = static_cast<size_t>(std::ceil(p * static_cast<double>(times.size())));
    const size_t i = std::max<size_t>(rank, 1) - 1;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(i), times.end());
    return static_cast<double>(times[i]);
  }
};

// Runs one after another on the calling thread.
Samples run_for(Model& model, const std::vector<Tensor>& inputs, double duration_s) {
  constexpr size_t kMaxSamples = size_t{1} << 24;
  Samples samples;
  samples.times.reserve(1 << 16);
  std::vector<Tensor> outputs(model.info().spec.outputs.size());
  const Clock::time_point start = Clock::now();
  Clock::time_point before = start;
  do {
    model.run(inputs, outputs);
    const Clock::time_point after = Clock::now();
    samples.times.push_back(std::chrono::duration<float>(after - before).count());
    before = after;
  } while (std::chrono::duration<double>(before - start).count() < duration_s && samples.times.size() < kMaxSamples);
  samples.elapsed_s = std::chrono::duration<double>(before - start).count();
  return samples;
}

// Runs on `callers` threads at full speed, and throws the error of any of them.
Samples run_concurrently(Model& model, const BenchOptions& options, int callers) {
  std::vector<std::vector<Tensor>> inputs;
  for (int i = 0; i < callers; ++i) inputs.push_back(make_inputs(model.info().spec, options.inputs));
  run_for(model, inputs[0], 0);  // throws errors of the inputs on this thread
  const Clock::time_point start = Clock::now();
  std::vector<std::future<Samples>> running;  // get() throws the thread's exception
  for (const std::vector<Tensor>& tensors : inputs)
    running.push_back(std::async(std::launch::async, [&] { return run_for(model, tensors, options.duration_s); }));
  std::vector<Samples> all;
  for (std::future<Samples>& one : running) all.push_back(one.get());
  Samples total;
  total.elapsed_s = seconds_since(start);
  for (const Samples& samples : all) total.times.insert(total.times.end(), samples.times.begin(), samples.times.end());
  return total;
}

OrderedJson measure(const BenchOptions& options, int replicas, int threads) {
  LoadSettings tried = options.load;
  tried.threads = threads;
  const std::string untried = try_dummy_inputs(tried, options.inputs);
  const uint64_t memory_before = proportional_bytes();
  Clock::time_point start = Clock::now();
  LoadOptions load = load_options(options.load);
  load.replicas = replicas;
  load.threads = threads;
  const std::shared_ptr<Model> model = Model::load(Package::open(options.load.path), load);
  const double load_s = seconds_since(start);
  SCONCE_CHECK(untried.empty(), kModelFailed, untried);
  const std::vector<Tensor> inputs = make_inputs(model->info().spec, options.inputs);
  manual_seed(options.inputs.seed);
  start = Clock::now();
  run_for(*model, inputs, 0);
  const double first_s = seconds_since(start);
  run_for(*model, inputs, std::min(0.5, options.duration_s / 4));  // warms caches and clock rates
  Samples alone = run_for(*model, inputs, options.duration_s);
  const int callers = options.callers > 0 ? options.callers : replicas;
  Samples loaded = run_concurrently(*model, options, callers);
  const uint64_t memory = proportional_bytes();
  return {
      {"replicas", replicas},
      {"threads", threads},
      {"load_s", load_s},
      {"first_run_s", first_s},
      {"latency_s", {{"p50", alone.percentile(0.5)}, {"p90", alone.percentile(0.9)}, {"p99", alone.percentile(0.99)}}},
      {"latency_bins", time_bins(alone.times)},
      {"callers", callers},
      {"runs_per_s", static_cast<double>(loaded.times.size()) / loaded.elapsed_s},
      {"loaded_latency_s",
       {{"p50", loaded.percentile(0.5)}, {"p90", loaded.percentile(0.9)}, {"p99", loaded.percentile(0.99)}}},
      {"loaded_latency_bins", time_bins(loaded.times)},
      {"memory_bytes", memory},
      {"model_bytes", memory > memory_before ? memory - memory_before : 0},
      {"constant_bytes", model->info().constant_bytes}};
}

void print_row(const OrderedJson& row) {
  const auto time = [&](const char* group, const char* name) { return format_seconds(row[group][name].get<double>()); };
  std::cout << fmt::format("{:>8} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>11.1f} {:>10} {:>10} {:>10}\n",
                           row["replicas"].get<int>(), row["threads"].get<int>() ? row["threads"].dump() : "auto",
                           format_seconds(row["load_s"].get<double>()),
                           format_seconds(row["first_run_s"].get<double>()), time("latency_s", "p50"),
                           time("latency_s", "p90"), time("latency_s", "p99"), row["callers"].get<int>(),
                           row["runs_per_s"].get<double>(), time("loaded_latency_s", "p99"),
                           format_bytes(row["memory_bytes"].get<uint64_t>()),
                           format_bytes(row["constant_bytes"].get<uint64_t>()))
            << std::flush;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "a CPU without a name";
}

// Everything except the measurements.
OrderedJson describe_host(const BenchOptions& options) {
  return {{"package", options.load.path},
          {"sconce", version()},
          {"time", time_text(std::chrono::system_clock::now())},
          {"cpu", cpu_name()},
          {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"device", options.load.device}};
}

int bench(const BenchOptions& options) {
  // Before the long measurements, so that a wrong file name is reported at once.
  std::optional<OrderedJson> earlier;
  if (!options.against.empty()) earlier = read_bench(options.against);
  OrderedJson document = describe_host(options);
  OrderedJson rows = OrderedJson::array();
  if (!options.json)
    std::cout << bold(fmt::format("{:>8} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>11} {:>10} {:>10} {:>10}",
                                  "replicas", "threads", "load", "first run", "p50", "p90", "p99", "callers", "runs/s",
                                  "their p99", "memory", "weights"))
              << "\n";
  for (const int replicas : options.replicas)
    for (const int threads : options.threads) {
      if (on_terminal() && !options.json) std::cout << faint("measuring ...") << std::flush << "\r\x1b[K";
      rows.push_back(measure(options, replicas, threads));
      if (options.json) continue;
      print_row(rows.back());
      if (!earlier) continue;
      const OrderedJson* const before = same_measurement(*earlier, rows.back());
      std::cout << faint("         " + (before ? "than earlier: " + describe_change(rows.back(), *before)
                                               : "the earlier file has no such measurement"))
                << "\n";
    }
  document["measurements"] = std::move(rows);
  if (options.json) std::cout << document.dump(2, ' ', false, OrderedJson::error_handler_t::replace) << "\n";
  if (options.html.empty()) return 0;
  std::ofstream file(options.html, std::ios::binary | std::ios::trunc);
  file << bench_page(document, earlier ? &*earlier : nullptr);
  SCONCE_CHECK(file.flush(), kIo, "cannot write file: ", options.html);
  return 0;
}

}  // namespace

Action add_bench(CommandLine& app) {
  auto options = std::make_shared<BenchOptions>();
  add_load_options(app, options->load);
  add_input_options(app, options->inputs);
  app.option("--replicas", options->replicas, "Numbers of replicas to measure: 1,2,4").listed().positive();
  app.option("--threads", options->threads, "Numbers of threads per replica; 0: as compiled").listed().not_negative();
  app.option("--callers", options->callers, "Threads that call at once for the throughput; 0: one per replica")
      .not_negative();
  app.option("--duration", options->duration_s, "Seconds per measurement").positive();
  app.flag("--json", options->json, "As JSON, times in seconds");
  app.option("--html", options->html, "Write a page with histograms of the times, which needs nothing else")
      .placeholder("FILE");
  app.option("--against", options->against, "Compare with an earlier page of --html, or with the output of --json")
      .placeholder("EARLIER");
  app.checked([options] {
    check_input_options(options->inputs);
    load_options(options->load);
  });
  return [options] { return bench(*options); };
}

}  // namespace sconce::server::cli
