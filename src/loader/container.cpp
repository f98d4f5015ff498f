#include "src/loader/container.h"

#include <algorithm>
#include <unordered_map>

#include "package_format/call_spec.h"
#include "sconce/check.h"
#include "src/aoti_abi/guard.h"
#include "src/device/device_backend.h"
#include "src/faults/code_entry.h"
#include "src/loader/constant_loading.h"
#include "src/loader/error_capture.h"

namespace sconce::loader {
namespace {

// "Error: Expected u0 <= 8 but received 9\n" -> "Expected u0 <= 8 but received 9"
std::string trimmed(std::string text) {
  constexpr std::string_view kPrefix = "Error: ";
  if (const size_t at = text.find(kPrefix); at != std::string::npos) text.erase(0, at + kPrefix.size());
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

ContainerApi ContainerApi::resolve(const SharedLibrary& library) {
  ContainerApi api;
#define SCONCE_X(member, exported, parameters) api.member = library.function<RuntimeError parameters>(#exported);
  SCONCE_CONTAINER_REQUIRED(SCONCE_X)
#undef SCONCE_X
#define SCONCE_X(member, exported, parameters) \
  api.member = reinterpret_cast<RuntimeError(*) parameters>(library.find(#exported));
  SCONCE_CONTAINER_OPTIONAL(SCONCE_X)
#undef SCONCE_X
  api.last_error = reinterpret_cast<RuntimeError (*)(const char**)>(library.find("AOTInductorGetLastError"));
  return api;
}

// Throws the error of a failed call: the operator's error if one of ours failed, with the model's own message.
// Generated code ignores some results, so an operator's error counts even if the call reports success.
void Container::check(RuntimeError rc, const char* what, ErrorCapture& capture) const {
  std::optional<aoti_abi::ShimError> operator_error = aoti_abi::take_error();
  if (rc == 0 && !operator_error) [[likely]]
    return;
  std::string words = trimmed(capture.take());
  if (const char* text = nullptr; rc != 0 && module_->api().last_error && module_->api().last_error(&text) == 0)
    if (text && *text) words = trimmed(text);
  if (operator_error) {
    std::string text = operator_error->text;
    if (!words.empty()) text += " [" + words + "]";
    throw Error(operator_error->code, text);
  }
  // A failed input check is the caller's mistake.
  const bool of_inputs =
      words.find("input_handles[") != std::string::npos && words.find("expected") != std::string::npos;
  if (of_inputs) throw Error(ErrorCode::kInvalidArgument, words);
  // A model reports a failed allocation only by the exception's name.
  if (words == "std::bad_alloc") SCONCE_FAIL(kOutOfMemory, what, ": out of memory");
  throw Error(ErrorCode::kModelFailed, words.empty() ? std::string(what) + " failed without a message" : words);
}

namespace {

// How PyTorch packed int4 weights when it compiled the package.
Int4Packing packing_of(const std::string& isa) {
  if (isa.empty()) return Int4PackingScope::current();
  if (isa.starts_with("AVX512")) return Int4Packing::kColumns64;
  return isa.starts_with("AVX2") ? Int4Packing::kColumns32 : Int4Packing::kPairs;
}

}  // namespace

Container::Container(std::shared_ptr<const Module> module, Device device, ConstantSource& source)
    : module_(std::move(module)),
      reported_(module_->reported_name()),
      packing_(packing_of(module_->spec().cpu_isa)),
      handle_(nullptr, Destroy{module_->api().destroy}) {
  const faults::CodeEntry entry(reported_);
  const Int4PackingScope packing(packing_);
  const ContainerApi& api = module_->api();
  if (module_->extern_nodes()) {
    executor_ = std::make_unique<custom_ops::ProxyExecutor>(module_->extern_nodes());
    executor_->leave_run_on_failure();
  }
  ErrorCapture capture;
  aoti_abi::take_error();
  ConstantLoading loading(*module_, source);
  const DeviceFiles::Scope files(module_->device_files());
  ContainerHandle created = nullptr;
  const RuntimeError rc = api.create(&created, 1, to_string(device).c_str(), nullptr);
  handle_.reset(created);
  check(rc, "AOTInductorModelContainerCreateWithDevice", capture);
  if (!module_->blob().empty() && loading.given() == 0 && api.update_from_blob)
    check(api.update_from_blob(created, reinterpret_cast<const uint8_t*>(module_->blob().data())),
          "AOTInductorModelUpdateConstantsFromBlob", capture);
  constants_given_ = loading.given();
  check(api.num_inputs(created, &num_inputs_), "GetNumInputs", capture);
  check(api.num_outputs(created, &num_outputs_), "GetNumOutputs", capture);
  input_handles_.resize(num_inputs_);
  output_handles_.resize(num_outputs_);
}

std::vector<ContainerConstant> Container::constants() const {
  const ContainerApi& api = module_->api();
  ErrorCapture capture;
  size_t count = 0;
  check(api.num_constants(handle_.get(), &count), "GetNumConstants", capture);
  std::vector<ContainerConstant> constants(count);
  for (size_t i = 0; i < count; ++i) {
    ContainerConstant& c = constants[i];
    const char *name = nullptr, *fqn = nullptr;
    check(api.constant_name(handle_.get(), i, &name), "GetConstantName", capture);
    check(api.constant_fqn(handle_.get(), i, &fqn), "GetConstantOriginalFQN", capture);
    check(api.constant_folded(handle_.get(), i, &c.folded), "GetConstantFromFolded", capture);
    check(api.constant_type(handle_.get(), i, &c.type), "GetConstantType", capture);
    check(api.constant_dtype(handle_.get(), i, &c.dtype), "GetConstantDtype", capture);
    if (api.constant_data_size)
      check(api.constant_data_size(handle_.get(), i, &c.data_size), "GetConstantDataSize", capture);
    c.name = name ? name : "";
    c.fqn = fqn ? fqn : "";
  }
  return constants;
}

void Container::complete(ModelSpec& spec) const {
  const ContainerApi& api = module_->api();
  ErrorCapture capture;
  const auto name = [&](std::vector<TensorSpec>& tensors, size_t count, auto name_of, const char* what) {
    tensors.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const char* text = nullptr;
      check(name_of(handle_.get(), i, &text), what, capture);
      tensors[i].name = text ? text : "";
    }
  };
  name(spec.inputs, num_inputs_, api.input_name, "GetInputName");
  name(spec.outputs, num_outputs_, api.output_name, "GetOutputName");
  if (!spec.call_spec.known) {
    const char *in = nullptr, *out = nullptr;
    check(api.call_spec(handle_.get(), &in, &out), "GetCallSpec", capture);
    if (in && *in && out && *out) spec.call_spec = parse_call_spec(in, out);
  }
  if (spec.call_spec.known && spec.call_spec.input_leaf.empty()) map_inputs(spec.call_spec, spec.inputs);
}

void Container::set_constants(std::span<const std::pair<std::string, Tensor>> constants) {
  const faults::CodeEntry entry(reported_);
  const ContainerApi& api = module_->api();
  ErrorCapture capture;
  // The container makes its own handles from these (torch 2.15), or keeps them and never frees them (2.8 to 2.14). So
  // the handles belong to this object and live as long as the container.
  std::vector<AOTInductorConstantMapEntry> pairs;
  for (const auto& [name, tensor] : constants) {
    user_managed_.push_back(std::make_unique<Tensor>(tensor));
    pairs.push_back({name.c_str(), reinterpret_cast<AtenTensorHandle>(user_managed_.back().get())});
  }
  if (api.update_user_managed_pairs) {
    check(api.update_user_managed_pairs(handle_.get(), pairs.data(), pairs.size(), false, false),
          "UpdateUserManagedConstantBufferPairs", capture);
  } else {
    SCONCE_CHECK(api.update_user_managed, kUnsupported,
                 "packages of torch 2.7 and older cannot take weights from outside");
    std::unordered_map<std::string, AtenTensorHandle> map;
    for (const auto& pair : pairs) map.emplace(pair.name, pair.handle);
    check(api.update_user_managed(handle_.get(), &map, false, false), "UpdateUserManagedConstantBuffer", capture);
  }
}

void Container::fold(void* stream) {
  const faults::CodeEntry entry(reported_);
  const DeviceFiles::Scope files(module_->device_files());
  const Int4PackingScope packing(packing_);
  ErrorCapture capture;
  aoti_abi::take_error();
  check(module_->api().fold(handle_.get(), false, reinterpret_cast<StreamHandle>(stream), executor()),
        "RunConstantFolding", capture);
}

void Container::run(std::span<const Tensor> inputs, std::span<Tensor> outputs, void* stream) {
  const faults::CodeEntry entry(reported_);
  const DeviceFiles::Scope files(module_->device_files());
  SCONCE_CHECK(inputs.size() == num_inputs_, kInvalidArgument, "expected ", num_inputs_, " inputs, got ",
               inputs.size());
  SCONCE_CHECK(outputs.size() == num_outputs_, kInvalidArgument, "expected room for ", num_outputs_, " outputs, got ",
               outputs.size());
  const Int4PackingScope packing(packing_);
  const ContainerApi& api = module_->api();
  ErrorCapture capture;
  aoti_abi::take_error();
  std::fill(output_handles_.begin(), output_handles_.end(), nullptr);
  // After its checks, the model takes ownership of input handles and nulls them; the remaining handles are freed here.
  struct Handles {
    std::vector<AtenTensorHandle>& handles;
    ~Handles() {
      for (size_t i = 0; i < handles.size(); ++i) {
        AtenTensorHandle handle = handles[i];
        if (!handle) continue;
        for (size_t j = i; j < handles.size(); ++j)  // an output may occur twice
          if (handles[j] == handle) handles[j] = nullptr;
        aoti_abi::delete_handle(handle);
      }
    }
  };
  const Handles own_inputs{input_handles_}, own_outputs{output_handles_};
  aoti_abi::in_memory("the handles of a run's inputs", [&] {
    for (size_t i = 0; i < num_inputs_; ++i) {
      const Tensor& input = inputs[i];
      const bool empty = input.is_cpu() && input.layout() == Layout::kStrided && input.numel() == 0;
      // The memory after the caller's array may hold anything.
      input_handles_[i] =
          aoti_abi::new_handle(empty ? Tensor::empty_strided(input.sizes(), input.strides(), input.dtype()) : input);
    }
  });
  const auto run = api.run_single_threaded ? api.run_single_threaded : api.run;
  const RuntimeError rc = run(handle_.get(), input_handles_.data(), num_inputs_, output_handles_.data(), num_outputs_,
                              reinterpret_cast<StreamHandle>(stream), executor());
  check(rc, "the model", capture);
  for (size_t i = 0; i < num_outputs_; ++i)
    outputs[i] = output_handles_[i] ? *aoti_abi::tensor_of(output_handles_[i]) : Tensor();
}

}  // namespace sconce::loader
