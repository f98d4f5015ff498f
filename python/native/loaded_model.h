// LoadedModel: a model of the runtime, and how Python calls it. Shared by its Python object and its pending runs.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "python/native/arguments.h"
#include "python/native/call_plan.h"
#include "sconce/model.h"

namespace sconce::python {

// What one call needs; kept for the next one.
struct Frame {
  explicit Frame(const CallPlan& plan, size_t outputs_count) : inputs(plan.inputs()), outputs(outputs_count) {}
  void clear() noexcept;

  Arguments arguments;
  std::vector<Tensor> inputs, outputs;
};

class LoadedModel {
 public:
  // Needs the GIL, which it releases while the model loads.
  LoadedModel(std::shared_ptr<const Package> package, LoadOptions options, OutputForm form);
  // Waits for running requests with the GIL released. In a child of the process that loaded it, the model's memory is
  // kept, because its threads cannot end there.
  ~LoadedModel();
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  // kFailedPrecondition in a child of the process that loaded it.
  Model& model() const;
  const CallPlan& plan() const noexcept { return plan_; }
  OutputForm form() const noexcept { return form_; }

  // Frames are exchanged with the GIL held.
  std::unique_ptr<Frame> take_frame();
  void return_frame(std::unique_ptr<Frame> frame) noexcept;

  // The error's text with Python's names of inputs instead of their numbers.
  std::string with_paths(std::string text) const;

 private:
  std::shared_ptr<Model> model_;
  const CallPlan plan_;
  const OutputForm form_;
  const uint64_t forks_;
  std::vector<std::unique_ptr<Frame>> frames_;
};

nb::object run_info(const RunInfo& info);
// Runs on the calling thread, which waits with the GIL released. info may be null.
nb::object call(LoadedModel& loaded, PyObject* args, PyObject* kwargs, RunInfo* info);
// A concurrent.futures.Future of the result.
nb::object submit(const std::shared_ptr<LoadedModel>& loaded, PyObject* args, PyObject* kwargs);

}  // namespace sconce::python
