// The module sconce._native. python/sconce has what users see.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "python/native/completions.h"
#include "python/native/descriptions.h"
#include "python/native/errors.h"
#include "python/native/forked.h"
#include "python/native/host_arrays.h"
#include "python/native/loaded_model.h"
#include "python/native/package_source.h"
#include "python/native/tensor_object.h"
#include "python/native/weight_updates.h"
#include "sconce/check.h"
#include "sconce/mapped_files.h"
#include "sconce/random.h"
#include "sconce/runnable.h"
#include "sconce/version.h"

namespace sconce::python {
namespace {

struct ModelObject {
  std::shared_ptr<LoadedModel> loaded;
};

LoadedModel& loaded_of(PyObject* self) {
  SCONCE_CHECK(nb::inst_ready(self), kFailedPrecondition, "the model is not loaded");
  return *nb::inst_ptr<ModelObject>(self)->loaded;
}
Model& model_of(const ModelObject& self) { return self.loaded->model(); }

// The slot behind model(...). Nanobind's own calls would convert arguments first.
PyObject* call_slot(PyObject* self, PyObject* args, PyObject* kwargs) noexcept {
  try {
    return call(loaded_of(self), args, kwargs, nullptr).release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyType_Slot model_slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_slot)}, {0, nullptr}};

OutputForm form_of(const std::string& outputs, bool cuda) {
  if (outputs.empty()) return cuda ? OutputForm::kDlpack : OutputForm::kNumpy;
  if (outputs == "numpy") return OutputForm::kNumpy;
  if (outputs == "dlpack") return OutputForm::kDlpack;
  if (outputs == "torch") return OutputForm::kTorch;
  SCONCE_FAIL(kInvalidArgument, "outputs: expected \"numpy\", \"dlpack\" or \"torch\", got \"", outputs, "\"");
}

std::shared_ptr<LoadedModel> load(nb::handle source, const std::string& model_name,
                                  const std::vector<std::string>& devices, int replicas, int threads,
                                  const std::vector<int>& cpu_set, bool check_inputs, bool verify, bool warm_up,
                                  const std::string& outputs, int cuda_graphs, bool allow_tf32,
                                  const std::vector<std::filesystem::path>& op_libraries,
                                  const std::filesystem::path& trial_program) {
  std::shared_ptr<const Package> package = open_package(source);
  LoadOptions options;
  options.model_name = model_name;
  const bool cuda = package->model(model_name).device_key == "cuda";
  options.devices.clear();
  for (const std::string& device : devices) options.devices.push_back(parse_device(device));
  if (devices.empty()) options.devices.push_back(parse_device(cuda ? "cuda:0" : "cpu"));
  options.replicas = replicas;
  options.threads = threads;
  options.cpu_set = cpu_set;
  options.check_inputs = check_inputs;
  options.verify = verify;
  options.warm_up = warm_up;
  const OutputForm form = form_of(outputs, cuda);
  options.host_outputs = form == OutputForm::kNumpy;
  options.cuda_graphs = cuda_graphs;
  options.allow_tf32 = allow_tf32;
  options.op_libraries = op_libraries;
  options.trial.program = trial_program;
  if (form == OutputForm::kTorch) nb::module_::import_("torch");
  return std::make_shared<LoadedModel>(std::move(package), std::move(options), form);
}

WeightState state_of(const std::string& which) {
  if (which == "active") return WeightState::kActive;
  if (which == "staged") return WeightState::kStaged;
  if (which == "previous") return WeightState::kPrevious;
  SCONCE_FAIL(kInvalidArgument, "which: expected \"active\", \"staged\" or \"previous\", got \"", which, "\"");
}

// Calls a function of the model with the GIL released.
template <class F>
auto released(const ModelObject& self, F&& function) {
  Model& model = model_of(self);
  const nb::gil_scoped_release gil;
  return function(model);
}

nb::list replicas(const ModelObject& self) {
  nb::list list;
  for (const ReplicaInfo& replica : model_of(self).replicas()) {
    nb::dict dict;
    dict["index"] = replica.index;
    dict["device"] = to_string(replica.device);
    dict["cpus"] = replica.cpus;
    dict["load"] = replica.load;
    dict["failure"] = replica.failure;
    list.append(dict);
  }
  return list;
}

// Nothing, or why the model cannot run here.
nb::object check(nb::handle source, const std::string& model_name,
                 const std::vector<std::filesystem::path>& op_libraries) {
  const std::shared_ptr<const Package> package = open_package(source);
  nb::list checked;
  for (const ModelSpec& spec : package->models()) {
    if (!model_name.empty() && spec.name != model_name) continue;
    std::string reason;
    {
      const nb::gil_scoped_release gil;
      package->verify();
      try {
        check_runnable(*package, spec.name, op_libraries);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kIncompatible && error.code() != ErrorCode::kUnsupported) throw;
        reason = error.what();
      }
    }
    checked.append(nb::make_tuple(spec.name, reason));
  }
  if (!model_name.empty() && nb::len(checked) == 0) package->model(model_name);  // throws, with the names there are
  return checked;
}

nb::dict inspect(nb::handle source) {
  const std::shared_ptr<const Package> package = open_package(source);
  nb::list models;
  for (const ModelSpec& spec : package->models()) models.append(describe(spec));
  nb::dict dict;
  dict["producer"] = package->producer();
  dict["models"] = models;
  return dict;
}

void bind_model(nb::module_& module) {
  nb::class_<ModelObject>(module, "Model", nb::type_slots(model_slots))
      .def(
          "__init__",
          [](ModelObject* self, nb::handle source, const std::string& model_name,
             const std::vector<std::string>& devices, int replica_count, int threads, const std::vector<int>& cpu_set,
             bool check_inputs, bool verify, bool warm_up, const std::string& outputs, int cuda_graphs, bool allow_tf32,
             const std::vector<std::filesystem::path>& op_libraries, const std::filesystem::path& trial_program) {
            new (self)
                ModelObject{load(source, model_name, devices, replica_count, threads, cpu_set, check_inputs, verify,
                                 warm_up, outputs, cuda_graphs, allow_tf32, op_libraries, trial_program)};
          },
          nb::arg("source").none(), nb::arg("model_name"), nb::arg("devices"), nb::arg("replicas"), nb::arg("threads"),
          nb::arg("cpu_set"), nb::arg("check_inputs"), nb::arg("verify"), nb::arg("warm_up"), nb::arg("outputs"),
          nb::arg("cuda_graphs"), nb::arg("allow_tf32"), nb::arg("op_libraries"), nb::arg("trial_program"))
      .def(
          "submit",
          [](const ModelObject& self, nb::args args, nb::kwargs kwargs) {
            return submit(self.loaded, args.ptr(), kwargs.ptr());
          },
          R"(Queues a call. Returns a concurrent.futures.Future of its result, whose attribute info is a RunInfo.

Arguments as in a call; they must not change until the future is done. Errors of the structure are raised here, all others
by the future.)")
      .def(
          "call_with_info",
          [](const ModelObject& self, nb::args args, nb::kwargs kwargs) {
            RunInfo info;
            nb::object result = call(*self.loaded, args.ptr(), kwargs.ptr(), &info);
            return nb::make_tuple(result, run_info(info));
          },
          "Calls the model. Returns the result and a RunInfo: weight version and label of the weights, replica, "
          "seconds.")
      .def(
          "_stage",
          [](const ModelObject& self, nb::handle weights, const std::string& label, bool partial, bool check_finite,
             bool dry_run, std::vector<std::string> ignore) {
            UpdateOptions options;
            options.full = !partial;
            options.label = label;
            options.check_finite = check_finite;
            options.dry_run = dry_run;
            options.ignore = std::move(ignore);
            stage(*self.loaded, weights, std::move(options));
          },
          nb::arg("weights").none(), nb::kw_only(), nb::arg("label"), nb::arg("partial"), nb::arg("check_finite"),
          nb::arg("dry_run"), nb::arg("ignore"))
      .def(
          "commit", [](const ModelObject& self) { return released(self, [](Model& m) { return m.commit_weights(); }); },
          R"(Makes the staged weights serve. Returns their weight version when no call uses the old ones any more.

The old ones are kept for rollback(). Raises FailedPrecondition if nothing is staged.)")
      .def(
          "rollback",
          [](const ModelObject& self) { return released(self, [](Model& m) { return m.rollback_weights(); }); },
          R"(Exchanges the weights that serve with the previous ones, under a new weight version, which it returns.

Raises FailedPrecondition if there are none.)")
      .def(
          "abort", [](const ModelObject& self) { released(self, [](Model& m) { m.abort_weights(); }); },
          "Drops the staged weights. Raises FailedPrecondition if there are none.")
      .def(
          "release_previous", [](const ModelObject& self) { released(self, [](Model& m) { m.release_previous(); }); },
          "Frees the previous weights, if there are any; rollback() is not possible then.")
      .def(
          "digest",
          [](const ModelObject& self, const std::string& which) {
            const WeightState state = state_of(which);
            return released(self, [&](Model& m) { return m.weights_digest(state); });
          },
          nb::arg("which") = "active",
          R"(A digest of a set's values, "sha-256:HEX": the same for equal values on any machine.

which: "active", "staged" or "previous". Raises FailedPrecondition if there is no such set.)")
      .def(
          "state_dict", [](const ModelObject& self) { return state_dict(*self.loaded); },
          "Copies of the active weights by name, as NumPy arrays; as sconce.Tensor for dtypes that NumPy lacks.")
      .def_prop_ro(
          "weight_version", [](const ModelObject& self) { return model_of(self).weight_version(); },
          "The version of the weights that serve: 1 after loading, one more with each commit and rollback.")
      .def_prop_ro(
          "generation", [](const ModelObject& self) { return model_of(self).weight_version(); },
          "The former name of weight_version, deprecated.")
      .def("_describe", [](const ModelObject& self) { return describe(model_of(self).info().spec); })
      .def("_constants", [](const ModelObject& self) { return describe(model_of(self).constants()); })
      .def("_weight_sets", [](const ModelObject& self) { return describe(model_of(self).weight_sets()); })
      .def("_replicas", &replicas)
      .def_prop_ro(
          "load_seconds",
          [](const ModelObject& self) {
            return std::chrono::duration<double>(model_of(self).info().load_time).count();
          },
          "Seconds that loading took.")
      .def_prop_ro(
          "constant_bytes", [](const ModelObject& self) { return model_of(self).info().constant_bytes; },
          "Bytes of one set of weights.");
}

}  // namespace

NB_MODULE(_native, module) {
  // Models that live until the interpreter ends are no leak.
  nb::set_leak_warnings(false);
  prepare_errors();
  import_numpy();
  watch_forks();
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const Error&) {
      set_python_error();
    }
  });
  bind_tensor(module);
  bind_model(module);
  module.def("inspect", &inspect, nb::arg("source").none());
  module.def("check", &check, nb::arg("source").none(), nb::arg("model_name"), nb::arg("op_libraries"));
  module.def("operators", &implemented_operators, "Names of the operators that this build implements, sorted.");
  module.def("manual_seed", &manual_seed, nb::arg("seed"),
             "Seeds the default random generators of the CPU and of GPUs, as torch.manual_seed does.");
  module.def(
      "guard_package_faults", &guard_package_faults,
      "Installs handlers of SIGFPE, SIGSEGV, SIGILL and SIGBUS for the whole process. With them, a fault of a "
      "package's "
      "own code (an integer division by zero) raises ModelFailed; without them, it ends the process. Other faults go "
      "to the previous handlers, such as faulthandler's.");
  module.def("version", &version);
  module.def("_end", [] {
    end_completions();
    leave_objects();
  });
}

}  // namespace sconce::python
