// Models in C: loading, descriptions, replicas.
#include "sconce/model.h"

#include <memory>

#include "package_format/description.h"
#include "sconce/mapped_files.h"
#include "sconce/random.h"
#include "sconce/version.h"
#include "src/c_api/boundary.h"
#include "src/c_api/handles.h"
#include "src/c_api/options.h"
#include "src/c_api/structs.h"

using namespace sconce;
using namespace sconce::c_api;

namespace {

sconce_replica_info info_of(const ReplicaInfo& replica) {
  sconce_replica_info info{};
  info.index = replica.index;
  info.graphs = replica.graphs;
  info.graph_runs = replica.graph_runs;
  info.load = replica.load;
  for (const int cpu : replica.cpus)
    if (cpu >= 0 && static_cast<size_t>(cpu) < 64 * std::size(info.cpus))
      info.cpus[cpu / 64] |= uint64_t{1} << (cpu % 64);
  put_text(info.device, to_string(replica.device));
  put_text(info.no_graphs, replica.no_graphs);
  put_text(info.failure, replica.failure);
  return info;
}

}  // namespace

const char* sconce_version(void) noexcept {
  static char text[32];
  static const bool made = (put_text(text, version()), true);
  return made ? text : "";
}

void sconce_manual_seed(uint64_t seed) noexcept { manual_seed(seed); }
void sconce_guard_mapped_files(void) noexcept { guard_mapped_files(); }
void sconce_guard_package_faults(void) noexcept { guard_package_faults(); }

sconce_error* sconce_model_load(const sconce_package* package, const sconce_load_options* options,
                                sconce_model** out) noexcept {
  return guarded([&] {
    required(out, "out");
    const std::shared_ptr<const Package>& opened = required(package, "package").package;
    *out = std::make_unique<sconce_model>(Model::load(opened, load_options_of(options))).release();
  });
}

sconce_error* sconce_model_free(sconce_model* model) noexcept {
  return guarded([&] {
    if (!model) return;
    InCallback::refuse("sconce_model_free");
    delete model;
  });
}

sconce_error* sconce_model_get_info(const sconce_model* model, sconce_model_info* info) noexcept {
  return guarded([&] {
    const Model& loaded = *required(model, "model").model;
    sconce_model_info result = model->signature.info();
    result.replicas = loaded.info().replicas;
    result.runs_on_caller = loaded.runs_on_caller();
    result.load_ns = loaded.info().load_time.count();
    result.constant_bytes = loaded.info().constant_bytes;
    put(info, "info", result);
  });
}

sconce_error* sconce_model_input(const sconce_model* model, size_t index, sconce_tensor_info* info) noexcept {
  return guarded([&] { put(info, "info", required(model, "model").signature.input(index)); });
}

sconce_error* sconce_model_output(const sconce_model* model, size_t index, sconce_tensor_info* info) noexcept {
  return guarded([&] { put(info, "info", required(model, "model").signature.output(index)); });
}

sconce_error* sconce_model_constant(const sconce_model* model, size_t index, sconce_constant_info* info) noexcept {
  return guarded([&] { put(info, "info", required(model, "model").signature.constant(index)); });
}

sconce_error* sconce_model_call_spec(const sconce_model* model, char** json) noexcept {
  return guarded([&] {
    required(json, "json");
    *json = given(json_text(required(model, "model").model->info().spec.call_spec));
  });
}

sconce_error* sconce_model_add_replica(sconce_model* model, const char* device, const int32_t* cpus, size_t cpu_count,
                                       int32_t* index) noexcept {
  return guarded([&] {
    InCallback::refuse("sconce_model_add_replica");
    const int added =
        required(model, "model").model->add_replica(parse_device(text_of(device, "device")), cores_of(cpus, cpu_count));
    if (index) *index = added;
  });
}

sconce_error* sconce_model_remove_replica(sconce_model* model, int32_t index) noexcept {
  return guarded([&] {
    InCallback::refuse("sconce_model_remove_replica");
    required(model, "model").model->remove_replica(index);
  });
}

sconce_error* sconce_model_replicas(const sconce_model* model, sconce_replica_info* infos, size_t room,
                                    size_t* count) noexcept {
  return guarded([&] {
    std::vector<sconce_replica_info> all;
    for (const ReplicaInfo& replica : required(model, "model").model->replicas()) all.push_back(info_of(replica));
    put_all(infos, room, count, "infos", all);
  });
}

void sconce_model_give_back_idle_memory(sconce_model* model) noexcept {
  if (model) model->model->give_back_idle_memory();
}

sconce_error* sconce_model_health(const sconce_model* model) noexcept {
  return guarded([&] {
    const Model& loaded = *required(model, "model").model;
    SCONCE_CHECK(!loaded.failed(), kDevice, "every replica has lost its device");
    const std::string fault = loaded.package_fault();
    SCONCE_CHECK(fault.empty(), kUnavailable, fault);
  });
}
