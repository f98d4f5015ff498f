// Constant sets in C: commit, rollback, digests.
#include "sconce/model.h"
#include "src/c_api/boundary.h"
#include "src/c_api/handles.h"
#include "src/c_api/structs.h"

using namespace sconce;
using namespace sconce::c_api;

static_assert(static_cast<int>(SCONCE_STAGED) == static_cast<int>(WeightState::kStaged) &&
              static_cast<int>(SCONCE_PREVIOUS) == static_cast<int>(WeightState::kPrevious));

sconce_error* sconce_model_commit(sconce_model* model, uint64_t* weight_version) noexcept {
  return guarded([&] {
    InCallback::refuse("sconce_model_commit");
    const uint64_t number = required(model, "model").model->commit_weights();
    if (weight_version) *weight_version = number;
  });
}

sconce_error* sconce_model_abort(sconce_model* model) noexcept {
  return guarded([&] { required(model, "model").model->abort_weights(); });
}

sconce_error* sconce_model_rollback(sconce_model* model, uint64_t* weight_version) noexcept {
  return guarded([&] {
    InCallback::refuse("sconce_model_rollback");
    const uint64_t number = required(model, "model").model->rollback_weights();
    if (weight_version) *weight_version = number;
  });
}

sconce_error* sconce_model_release_previous(sconce_model* model) noexcept {
  return guarded([&] { required(model, "model").model->release_previous(); });
}

uint64_t sconce_model_weight_version(const sconce_model* model) noexcept {
  return model ? model->model->weight_version() : 0;
}
uint64_t sconce_model_generation(const sconce_model* model) noexcept { return sconce_model_weight_version(model); }

sconce_error* sconce_model_digest(const sconce_model* model, sconce_set_state state, char** text) noexcept {
  return guarded([&] {
    const Model& loaded = *required(model, "model").model;
    required(text, "text");
    const int number = static_cast<int>(state);
    SCONCE_CHECK(number >= SCONCE_ACTIVE && number <= SCONCE_PREVIOUS, kInvalidArgument, "no set has state ", number);
    *text = given(loaded.weights_digest(static_cast<WeightState>(number)));
  });
}

sconce_error* sconce_model_sets(const sconce_model* model, sconce_set_info* infos, size_t room,
                                size_t* count) noexcept {
  return guarded([&] {
    std::vector<sconce_set_info> all;
    for (const WeightSetInfo& set : required(model, "model").model->weight_sets()) {
      sconce_set_info& info = all.emplace_back();
      info.state = static_cast<int32_t>(set.state);
      info.weight_version = set.weight_version;
      info.bytes = set.bytes;
      info.own_bytes = set.own_bytes;
      info.since_ns = std::chrono::nanoseconds(set.since.time_since_epoch()).count();
      put_text(info.label, set.label);
    }
    put_all(infos, room, count, "infos", all);
  });
}
