// The functions that the fake model exports: AOTInductorModelContainer* as torch 2.15 has them, and its knobs.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <unordered_map>

#include "fake_abi.h"
#include "fake_constants.h"
#include "fake_container.h"
#include "fake_knobs.h"

namespace {

constexpr const char* kOneIn = R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)"
                               R"({"type": "builtins.tuple", "context": "null", "children_spec": [)"
                               R"({"type": null, "context": null, "children_spec": []}]}, )"
                               R"({"type": "builtins.dict", "context": "[]", "children_spec": []}]}])";
constexpr const char* kOneOut = R"([1, {"type": null, "context": null, "children_spec": []}])";
constexpr const char* kTwoIn =
    R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)"
    R"({"type": "builtins.tuple", "context": "null", "children_spec": [)"
    R"({"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}, )"
    R"({"type": "builtins.dict", "context": "[]", "children_spec": []}]}])";
constexpr const char* kTwoOut =
    R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)"
    R"({"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}])";

// As generated code has it: every call on a thread makes this thread-local object.
thread_local std::string last_error;

// Runs the body with the exceptions that models catch, and reports them as models do.
template <class F>
AOTIRuntimeError guarded(F&& body) {
  try {
    last_error.clear();
    body();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "Unknown exception";
  }
  std::cerr << "Error: " << last_error << '\n';
  return 1;
}

class NoGrad {
 public:
  NoGrad() : before_(aoti_torch_grad_mode_is_enabled()) { aoti_torch_grad_mode_set_enabled(false); }
  ~NoGrad() { aoti_torch_grad_mode_set_enabled(before_); }

 private:
  bool before_;
};

fake::Container& container_of(AOTInductorModelContainerHandle handle) {
  return *reinterpret_cast<fake::Container*>(handle);
}

fake::Constants constants_of(const AOTInductorConstantMapEntry* pairs, size_t count) {
  fake::Constants result;
  for (size_t i = 0; i < count; ++i) result.emplace(pairs[i].name, pairs[i].handle);
  return result;
}

fake::Constants constants_of(AOTInductorConstantMapHandle map) {
  const auto& entries = *reinterpret_cast<const std::unordered_map<std::string, AtenTensorHandle>*>(map);
  return {entries.begin(), entries.end()};
}

const fake::ConstantInfo& constant(size_t index) {
  if (index >= fake::kConstantCount) throw std::out_of_range("no such constant");
  return fake::kConstants[index];
}

int64_t setting(const char* name) {
  const char* text = std::getenv((std::string("FAKE_MODEL_") + name).c_str());
  return text ? std::strtoll(text, nullptr, 10) : 0;
}

struct InitialKnobs : FakeKnobs {
  InitialKnobs() {
    fail_in_runs = setting("FAIL_IN_RUNS");
    fail_in_creates = setting("FAIL_IN_CREATES");
    fail_in_folds = setting("FAIL_IN_FOLDS");
    fail_in_updates = setting("FAIL_IN_UPDATES");
    fail_kind = static_cast<FakeFailure>(setting("FAIL_KIND"));
    sleep_us = setting("SLEEP_US");
    write_input = setting("WRITE_INPUT") != 0;
    return_input = setting("RETURN_INPUT") != 0;
  }
} the_knobs;

}  // namespace

FakeKnobs& fake::knobs() { return the_knobs; }

void fake::wait_while_held(float second) {
  static const char* const hold = std::getenv("FAKE_MODEL_HOLD");
  const auto held = [&] {
    std::ifstream file(hold);
    float only;
    return file && (!(file >> only) || only == second);
  };
  while (hold && held()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

#define API extern "C" [[gnu::visibility("default")]]
#define API_CALL(...)                     \
  {                                       \
    return guarded([&] { __VA_ARGS__; }); \
  }
using Container = AOTInductorModelContainerHandle;

API FakeKnobs* fake_model_knobs() { return &the_knobs; }

API AOTIRuntimeError AOTInductorModelContainerCreateWithDevice(Container* result, size_t models, const char* device,
                                                               const char*)
    API_CALL(*result = reinterpret_cast<Container>(new fake::Container(models, device)))

        API AOTIRuntimeError
    AOTInductorModelContainerCreate(Container* result, size_t models, bool is_cpu, const char* cubins) {
  return AOTInductorModelContainerCreateWithDevice(result, models, is_cpu ? "cpu" : "cuda", cubins);
}

API AOTIRuntimeError AOTInductorModelContainerCreateWithExternalConstants(Container* result, size_t models,
                                                                          const char* device, const char*,
                                                                          const AOTInductorConstantMapEntry* pairs,
                                                                          size_t count)
    API_CALL(*result = reinterpret_cast<Container>(new fake::Container(models, device, constants_of(pairs, count))))

        API AOTIRuntimeError AOTInductorModelContainerDelete(Container container)
            API_CALL(delete &container_of(container))

                static AOTIRuntimeError
    run(Container container, AtenTensorHandle* inputs, size_t input_count, AtenTensorHandle* outputs,
        size_t output_count, bool shared)
        API_CALL(if (input_count != fake::kInputs) throw std::runtime_error("expected inputs vector size to be " +
                                                                            std::to_string(fake::kInputs) +
                                                                            ", but got " + std::to_string(input_count));
                 if (output_count != fake::kOutputs) throw std::runtime_error("expected outputs vector size to be " +
                                                                              std::to_string(fake::kOutputs) +
                                                                              ", but got " +
                                                                              std::to_string(output_count));
                 const NoGrad no_grad; container_of(container).run(inputs, outputs, shared))

            API AOTIRuntimeError
    AOTInductorModelContainerRun(Container container, AtenTensorHandle* inputs, size_t input_count,
                                 AtenTensorHandle* outputs, size_t output_count, AOTInductorStreamHandle,
                                 AOTIProxyExecutorHandle) {
  return run(container, inputs, input_count, outputs, output_count, true);
}

API AOTIRuntimeError AOTInductorModelContainerRunSingleThreaded(Container container, AtenTensorHandle* inputs,
                                                                size_t input_count, AtenTensorHandle* outputs,
                                                                size_t output_count, AOTInductorStreamHandle,
                                                                AOTIProxyExecutorHandle) {
  return run(container, inputs, input_count, outputs, output_count, false);
}

API AOTIRuntimeError AOTInductorModelContainerGetNumConstants(Container, size_t* count)
    API_CALL(*count = fake::kConstantCount) API AOTIRuntimeError
    AOTInductorModelContainerGetConstantName(Container, size_t i, const char** name)
        API_CALL(*name = constant(i).name) API AOTIRuntimeError
    AOTInductorModelContainerGetConstantOriginalFQN(Container, size_t i, const char** fqn)
        API_CALL(*fqn = constant(i).fqn) API AOTIRuntimeError
    AOTInductorModelContainerGetConstantFromFolded(Container, size_t i, bool* folded)
        API_CALL(*folded = constant(i).folded) API AOTIRuntimeError
    AOTInductorModelContainerGetConstantType(Container, size_t i, int32_t* type)
        API_CALL(*type = constant(i).type) API AOTIRuntimeError
    AOTInductorModelContainerGetConstantDtype(Container, size_t i, int32_t* dtype)
        API_CALL(constant(i); *dtype = aoti_torch_dtype_float32()) API AOTIRuntimeError
    AOTInductorModelContainerGetConstantDataSize(Container, size_t i, size_t* bytes)
        API_CALL(*bytes = constant(i).data_size()) API AOTIRuntimeError
    AOTInductorModelContainerGetConstantsBlobSize(Container, uint64_t* bytes)
        API_CALL(*bytes = 0;
                 for (const fake::ConstantInfo& info
                      : fake::kConstants) if (!info.folded) * bytes += info.data_size()) API AOTIRuntimeError
    AOTInductorModelContainerDidCallLoadConstants(Container, bool* called) API_CALL(*called = fake::kIncludeWeights)

        API AOTIRuntimeError
    AOTInductorModelContainerExtractConstantsMap(Container container, AOTInductorConstantMapHandle map, bool inactive)
        API_CALL(auto& entries = *reinterpret_cast<std::unordered_map<std::string, AtenTensorHandle>*>(map);
                 for (const auto& [fqn, handle]
                      : container_of(container).extract(inactive)) entries.emplace(fqn, handle)) API AOTIRuntimeError
    AOTInductorModelContainerExtractConstantsMapEntries(Container container,
                                                        const AOTInductorConstantMapEntry** entries, size_t* count,
                                                        bool inactive)
        API_CALL(const auto& extracted = container_of(container).extract_entries(inactive);
                 *entries = extracted.empty() ? nullptr : extracted.data(); *count = extracted.size())

            API AOTIRuntimeError
    AOTInductorModelContainerUpdateConstantBuffer(Container container, AOTInductorConstantMapHandle map, bool inactive,
                                                  bool full)
        API_CALL(container_of(container).update(constants_of(map), inactive, full, false)) API AOTIRuntimeError
    AOTInductorModelContainerUpdateConstantBufferPairs(Container container, const AOTInductorConstantMapEntry* pairs,
                                                       size_t count, bool inactive, bool full)
        API_CALL(container_of(container).update(constants_of(pairs, count), inactive, full, false)) API AOTIRuntimeError
    AOTInductorModelContainerUpdateInactiveConstantBuffer(Container container, AOTInductorConstantMapHandle map)
        API_CALL(container_of(container).update(constants_of(map), true, true, false)) API AOTIRuntimeError
    AOTInductorModelContainerUpdateInactiveConstantBufferPairs(Container container,
                                                               const AOTInductorConstantMapEntry* pairs, size_t count)
        API_CALL(container_of(container).update(constants_of(pairs, count), true, true, false)) API AOTIRuntimeError
    AOTInductorModelContainerUpdateUserManagedConstantBuffer(Container container, AOTInductorConstantMapHandle map,
                                                             bool inactive, bool full)
        API_CALL(container_of(container).update(constants_of(map), inactive, full, true)) API AOTIRuntimeError
    AOTInductorModelContainerUpdateUserManagedConstantBufferPairs(Container container,
                                                                  const AOTInductorConstantMapEntry* pairs,
                                                                  size_t count, bool inactive, bool full)
        API_CALL(container_of(container).update(constants_of(pairs, count), inactive, full, true)) API AOTIRuntimeError
    AOTInductorModelUpdateConstantsFromBlob(Container container, const uint8_t* blob)
        API_CALL(container_of(container).update_from_blob(blob)) API AOTIRuntimeError
    AOTInductorModelContainerRunConstantFolding(Container container, bool inactive, AOTInductorStreamHandle,
                                                AOTIProxyExecutorHandle)
        API_CALL(const NoGrad no_grad; container_of(container).fold(inactive)) API AOTIRuntimeError
    AOTInductorModelContainerSwapConstantBuffer(Container container)
        API_CALL(container_of(container).swap()) API AOTIRuntimeError
    AOTInductorModelContainerFreeInactiveConstantBuffer(Container container)
        API_CALL(container_of(container).free_inactive())

            API AOTIRuntimeError AOTInductorModelContainerGetNumInputs(Container, size_t* count)
                API_CALL(*count = fake::kInputs) API AOTIRuntimeError
    AOTInductorModelContainerGetInputName(Container, size_t i, const char** name)
        API_CALL(if (i >= fake::kInputs) throw std::out_of_range("no such input");
                 *name = i == 0 ? "arg0_1" : "arg1_1") API AOTIRuntimeError
    AOTInductorModelContainerGetNumOutputs(Container, size_t* count)
        API_CALL(*count = fake::kOutputs) API AOTIRuntimeError
    AOTInductorModelContainerGetOutputName(Container, size_t i, const char** name)
        API_CALL(if (i >= fake::kOutputs) throw std::out_of_range("no such output");
                 *name = i == 0 ? "output0" : "output1") API AOTIRuntimeError
    AOTInductorModelContainerGetCallSpec(Container, const char** in_spec, const char** out_spec)
        API_CALL(*in_spec = fake::kLoop ? kTwoIn : kOneIn; *out_spec = fake::kLoop ? kTwoOut : kOneOut)

            API AOTIRuntimeError AOTInductorGetLastError(const char** text) {
  *text = last_error.c_str();
  return 0;
}
