#include "server/registry/warm_up_requests.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <fstream>
#include <latch>
#include <random>
#include <vector>

#include "sconce/check.h"
#include "server/scheduling/pipelines/cast.h"
#include "server/scheduling/signature/recorded_strides.h"
#include "server/support/failure.h"
#include "server/support/memory/request_memory.h"
#include "server/weights/validation/golden_file.h"
#include "src/support/error_context.h"
#include "src/support/excerpt.h"

namespace sconce::server::registry {
namespace {

class WarmUpRun final : public RunRequest {
 public:
  WarmUpRun(std::span<const Tensor> tensors, size_t output_count, std::latch& done) : done_(done) {
    results_.resize(output_count);
    inputs = tensors;
    outputs = results_;
  }
  void finished() noexcept override { done_.count_down(); }

 private:
  std::vector<Tensor> results_;
  std::latch& done_;
};

// Makes one run per replica, all in parallel: each goes to the least loaded replica.
void run_on_all(Model& model, const scheduling::ModelSignature& interface, std::vector<Tensor> inputs) {
  TensorScratch scratch;
  for (size_t i = 0; i < inputs.size(); ++i)
    inputs[i] = scheduling::in_recorded_strides(std::move(inputs[i]), interface.spec.inputs[i], scratch);
  const auto replicas = static_cast<std::ptrdiff_t>(model.replicas().size());
  std::latch done(replicas);
  std::deque<WarmUpRun> runs;
  for (std::ptrdiff_t i = 0; i < replicas; ++i) runs.emplace_back(inputs, interface.outputs.size(), done);
  for (WarmUpRun& run : runs) model.submit(run);
  done.wait();
  for (const WarmUpRun& run : runs) {
    if (!run.error) continue;
    const Failure failure = describe_failure(run.error);
    throw Error(failure.code,
                failure.message);  // with the request's name, which the replica thread's error does not have
  }
}

Tensor random_tensor(IntSpan sizes, DType dtype) {
  SCONCE_CHECK(scheduling::is_castable(dtype), kUnsupported, "there is no random data of dtype ", dtype_name(dtype));
  Tensor numbers = Tensor::empty(sizes, DType::kFloat32);
  std::minstd_rand random(1);
  const bool whole = !is_floating(dtype);
  for (float& number : std::span(numbers.data_as<float>(), static_cast<size_t>(numbers.numel()))) {
    number = std::generate_canonical<float, 24>(random);
    if (whole) number = number < 0.5F ? 0 : 1;
  }
  return scheduling::cast(numbers, dtype);
}

void read_tensor(const std::string& path, const Tensor& to) {
  std::ifstream file(path, std::ios::binary);
  SCONCE_CHECK(file, kIo, "cannot read ", path);
  file.read(static_cast<char*>(to.data()), static_cast<std::streamsize>(to.bytes()));
  SCONCE_CHECK(static_cast<size_t>(file.gcount()) == to.bytes() && file.peek() == std::ifstream::traits_type::eof(),
               kInvalidArgument, path, " does not have the ", to.bytes(), " bytes of the input");
}

std::vector<Tensor> tensors_of(const scheduling::TritonWarmUp& request, const scheduling::ModelSignature& interface) {
  std::vector<Tensor> tensors(interface.inputs.size());
  for (const scheduling::TritonWarmUp::Input& input : request.inputs) {
    const std::optional<size_t> at = interface.input_names.find(input.name);
    SCONCE_CHECK(at, kInvalidArgument, "the model has no input '", excerpt(input.name), "'; it has ",
                 excerpt(interface.input_names.list()));
    const std::optional<DType> dtype = scheduling::dtype_from_oip(input.datatype);
    SCONCE_CHECK(dtype, kInvalidArgument, "input '", excerpt(input.name), "' has no datatype that this server knows: '",
                 excerpt(input.datatype), "'");
    std::vector<int64_t> sizes = input.dims;
    if (request.batch_size > 0) sizes.insert(sizes.begin(), request.batch_size);
    if (input.values == scheduling::TritonWarmUp::Values::kRandom) {
      tensors[*at] = random_tensor(sizes, *dtype);
      continue;
    }
    Tensor tensor = Tensor::empty(sizes, *dtype);
    if (input.values == scheduling::TritonWarmUp::Values::kFile)
      read_tensor(input.file, tensor);
    else if (tensor.bytes() > 0)
      std::memset(tensor.data(), 0, tensor.bytes());
    tensors[*at] = std::move(tensor);
  }
  for (const scheduling::ControlInput& control : interface.controls) {
    Tensor& tensor = tensors[control.input];
    if (tensor.defined()) continue;
    const std::vector<int64_t> sizes(interface.inputs[control.input].shape.size(), 1);
    tensor = Tensor::empty(sizes, *interface.inputs[control.input].dtype);
    scheduling::fill_control(control, {.id = {.number = 1, .text = {}}}, tensor);
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    SCONCE_CHECK(tensors[i].defined(), kInvalidArgument, "it lacks input '", interface.input_names.name(i), "'");
  return tensors;
}

}  // namespace

void run_warm_up_requests(Model& model, const scheduling::ModelSignature& interface, std::span<const std::string> files,
                          std::span<const scheduling::TritonWarmUp> requests, const std::function<void()>& check) {
  for (const std::string& file : files) {
    const std::string where = "warm-up file " + file;
    const ErrorContext context(where);
    for (weights::GoldenRequest& request : weights::read_requests(file, interface, model)) {
      const std::string which = "request " + excerpt(request.name) + " of " + where;
      const ErrorContext request_context(which);
      check();
      run_on_all(model, interface, std::move(request.inputs));
    }
  }
  for (const scheduling::TritonWarmUp& request : requests) {
    const std::string where = "model_warmup '" + excerpt(request.name) + "'";
    const ErrorContext context(where);
    for (int64_t i = 0; i < request.count; ++i) {
      check();
      run_on_all(model, interface, tensors_of(request, interface));
    }
  }
}

}  // namespace sconce::server::registry
