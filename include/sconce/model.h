// Model: one compiled model of a package, loaded and ready to run.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/error.h"
#include "sconce/package.h"
#include "sconce/tensor.h"

namespace sconce {

struct LoadOptions {
  std::string model_name;        // inside the archive; "" as in Package::model
  std::vector<Device> devices{Device{}};
  int replicas = 1;              // per device
  // OpenMP threads a replica may use for operators outside compiled kernels; 0: what the package was compiled for,
  // but no more than the cores of the process. Compiled kernels always get the number they were compiled with.
  int threads = 0;
  std::vector<int> cpu_set;      // cores to pin lanes to, spread over replicas; empty: not pinned
  // Static sizes, ranges, equal symbols and strides of inputs. Count, dtype and rank are checked always.
  bool check_inputs = true;
  bool verify = false;           // CRC of weights too
  bool warm_up = true;           // fold constants before load returns
  std::vector<std::filesystem::path> op_libraries;
};

struct ModelInfo {
  ModelSpec spec;                          // inputs, outputs and constants completed by what the .so tells
  int replicas = 0;
  std::vector<Device> devices;
  std::chrono::nanoseconds load_time{};
  uint64_t constant_bytes = 0;             // of one constant set
};

struct RunInfo {
  uint64_t generation = 0;                 // constant set that answered
  int replica = -1;
  std::chrono::nanoseconds queue{};        // from submit to start
  std::chrono::nanoseconds compute{};
};

// A run to be done by a lane. The caller owns it and what the spans point to until finished() is called.
class RunRequest {
 public:
  virtual ~RunRequest() = default;
  std::span<const Tensor> inputs;          // in the model's flat order
  std::span<Tensor> outputs;               // assigned; undefined where the model returns None
  RunInfo info;
  std::exception_ptr error;                // set instead of outputs
  // Called once, on the lane. Must not block and must not throw.
  virtual void finished() noexcept = 0;

 private:
  friend class Lane;
  RunRequest* next_ = nullptr;
  std::chrono::steady_clock::time_point submitted_{};
};

enum class Buffer : int8_t { kActive, kInactive };

using ConstantMap = std::map<std::string, Tensor, std::less<>>;

// Thread-safe, except that one weight update happens at a time: the second caller gets kBusy.
class Model {
 public:
  // Loads and makes ready: preflight, container, constants, folding. Errors of Package::open, kIncompatible with every
  // reason why it cannot run here, kModelFailed, kOutOfMemory.
  static std::shared_ptr<Model> load(std::shared_ptr<const Package> package, LoadOptions options = {});
  ~Model();  // waits for running requests

  const ModelInfo& info() const noexcept;

  // Runs on the calling thread where a replica is free and its kernels are single-threaded, else on a lane; returns
  // when done. outputs.size() must be the model's. Inputs that the model writes are written in place.
  // kInvalidArgument names the input, what was expected and what came; kModelFailed carries the model's own message.
  RunInfo run(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  // Queues the request on the least loaded lane. Argument errors are delivered like all others.
  void submit(RunRequest& request);

  // Throws what run() would throw for these inputs, without running.
  void check_inputs(std::span<const Tensor> inputs) const;

  // Weights. Names are FQNs; where a constant has none, its own name.
  uint64_t generation() const noexcept;
  std::vector<ConstantSpec> constants() const;
  // Replaces the named constants of a buffer. full: all must be named (buffers and tensor constants may be left out).
  // What is left out comes from the active set. user_managed: the tensors are used in place, else copied.
  void update_constants(Buffer buffer, const ConstantMap& constants, bool full, bool user_managed = false);
  void fold_constants(Buffer buffer);
  void swap_constants();       // the inactive set becomes active, the active one inactive; kFailedPrecondition if empty
  void free_inactive_constants();
  ConstantMap extract_constants(Buffer buffer) const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Whether a model could be loaded in this process: symbols, libraries, instruction sets, platform; none of its code
// runs. kIncompatible with every reason against it. The name as in Package::model.
void check_runnable(const Package& package, std::string_view model_name = {});

// Random state of the operators that draw numbers (PyTorch's default CPU generator).
void manual_seed(uint64_t seed);

// Operators this build implements, sorted: "aoti_torch_cpu_addmm_out".
std::vector<std::string> implemented_operators();

std::string version();  // "0.1.0"

}  // namespace sconce
