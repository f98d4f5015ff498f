// Runs in C: sconce_model_run, sconce_model_submit.
#include <atomic>
#include <memory>

#include "sconce/model.h"
#include "src/c_api/boundary.h"
#include "src/c_api/handles.h"
#include "src/c_api/options.h"
#include "src/c_api/structs.h"
#include "src/c_api/tensors.h"

using namespace sconce;
using namespace sconce::c_api;

namespace {

sconce_run_info info_of(const RunInfo& run) {
  sconce_run_info info;
  info.size = sizeof info;
  info.weight_version = run.weight_version;
  info.replica = run.replica;
  info.queue_ns = run.queue.count();
  info.compute_ns = run.compute.count();
  if (run.label)
    put_text(info.label, *run.label);
  else
    info.label[0] = '\0';
  return info;
}

void check_outputs(const Model& model, size_t count) {
  const size_t expected = model.info().spec.outputs.size();
  SCONCE_CHECK(count == expected, kInvalidArgument, "expected room for ", expected, " outputs, got ", count);
}

// A run on a replica thread.
class Request : public RunRequest {
 public:
  Request(const sconce_model& model, Tensors&& inputs, const sconce_run_options& options)
      : inputs_(std::move(inputs)), outputs_(model.model->info().spec.outputs.size()) {
    this->inputs = inputs_.all();
    this->outputs = outputs_.all();
    affinity = options.affinity;
    device_outputs = switch_of(options.device_outputs, "device_outputs");
  }

 protected:
  Tensors inputs_, outputs_;
};

class Waited final : public Request {
 public:
  using Request::Request;
  void finished() noexcept override {
    done_.store(true, std::memory_order_release);
    done_.notify_one();
  }
  void wait() {
    done_.wait(false, std::memory_order_acquire);
    if (error) std::rethrow_exception(error);
  }

 private:
  std::atomic<bool> done_{false};
};

class Submitted final : public Request {
 public:
  Submitted(const sconce_model& model, Tensors&& inputs, const sconce_run_options& options,
            sconce_run_callback callback, void* context)
      : Request(model, std::move(inputs), options),
        callback_(callback),
        context_(context),
        given_(outputs_.all().size(), nullptr) {}

  void ran() override { give(outputs_.all(), inputs_.all(), given_.data()); }

  void finished() noexcept override {
    const std::unique_ptr<Submitted> self(this);
    sconce_error* const failure = error ? error_of(error) : nullptr;
    const sconce_run_info run = info_of(info);
    const InCallback here;
    callback_(context_, failure, failure ? nullptr : given_.data(), failure ? 0 : given_.size(), &run);
  }

 private:
  sconce_run_callback callback_;
  void* context_;
  std::vector<sconce_managed_tensor*> given_;
};

}  // namespace

sconce_error* sconce_model_run(sconce_model* model, const sconce_tensor* const* inputs, size_t input_count,
                               sconce_managed_tensor** outputs, size_t output_count, const sconce_run_options* given,
                               sconce_run_info* info) noexcept {
  return guarded([&] {
    Model& loaded = *required(model, "model").model;
    InCallback::refuse("sconce_model_run");
    const auto options = taken(given, "options");
    const size_t info_size = info ? checked_size(*info, "info") : 0;
    check_outputs(loaded, output_count);
    SCONCE_CHECK(outputs || output_count == 0, kInvalidArgument, "outputs is null");
    Tensors views = views_of(inputs, input_count);
    RunInfo ran;
    if (switch_of(options.device_outputs, "device_outputs")) {
      Waited request(*model, std::move(views), options);
      loaded.submit(request);
      request.wait();
      give(request.outputs, request.inputs, outputs);
      ran = request.info;
    } else {
      Tensors made(output_count);
      ran = loaded.run(views.all(), made.all(), options.affinity);
      give(made.all(), views.all(), outputs);
    }
    if (info) put(info, info_of(ran), info_size);
  });
}

sconce_error* sconce_model_submit(sconce_model* model, const sconce_tensor* const* inputs, size_t input_count,
                                  const sconce_run_options* given, sconce_run_callback callback,
                                  void* context) noexcept {
  return guarded([&] {
    Model& loaded = *required(model, "model").model;
    const auto options = taken(given, "options");
    SCONCE_CHECK(callback, kInvalidArgument, "callback is null");
    auto request = std::make_unique<Submitted>(*model, views_of(inputs, input_count), options, callback, context);
    loaded.submit(*request.release());  // finished() deletes it
  });
}

sconce_error* sconce_model_check_inputs(const sconce_model* model, const sconce_tensor* const* inputs,
                                        size_t input_count) noexcept {
  return guarded([&] { required(model, "model").model->check_inputs(views_of(inputs, input_count).all()); });
}
