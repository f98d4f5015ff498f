// Weight updates in C: sconce_update_*, and updates in one call.
#include <algorithm>
#include <memory>

#include "sconce/device_memory.h"
#include "sconce/model.h"
#include "sconce/weight_sources.h"
#include "src/c_api/boundary.h"
#include "src/c_api/handles.h"
#include "src/c_api/options.h"
#include "src/c_api/structs.h"
#include "src/c_api/tensors.h"

using namespace sconce;
using namespace sconce::c_api;

namespace {

WeightEntry entry_of(const char* name, size_t index) {
  SCONCE_CHECK(name, kInvalidArgument, "entry ", index, ": its name is null");
  WeightEntry entry;
  entry.name = name;
  return entry;
}

void check_no_stream(const sconce_update& update) {
  SCONCE_CHECK(update.state == sconce_update::Stream::kNone, kFailedPrecondition,
               "the update's weights come as a stream, not by entries");
}

const WeightEntry& declared(const sconce_update& update, size_t index) {
  check_no_stream(update);
  const std::vector<WeightEntry>& entries = update.entries;
  SCONCE_CHECK(index < entries.size(), kInvalidArgument, "the update has no entry ", index, ", only ", entries.size());
  return entries[index];
}

// Copies the tensor's values, row-major, to the entry's memory.
void write(WeightUpdate& update, size_t index, const WeightEntry& entry, const Tensor& tensor) {
  SCONCE_CHECK(tensor.dtype() == entry.dtype && std::ranges::equal(tensor.sizes(), entry.shape), kInvalidArgument,
               "constant '", entry.name, "': declared as ", dtype_name(entry.dtype), " ",
               to_string(IntSpan(entry.shape)), ", got ", describe(tensor));
  const std::span<std::byte> memory = update.memory(index);
  SCONCE_CHECK(memory.size() == tensor.bytes(), kInternal, "constant '", entry.name, "': ", memory.size(),
               " bytes of memory for ", tensor.bytes());
  if (!memory.empty()) {
    std::vector<int64_t> strides(tensor.sizes().size());
    contiguous_strides(tensor.sizes(), strides.data());
    Tensor destination = Tensor::from_blob(memory.data(), tensor.sizes(), strides, tensor.dtype());
    transfer(tensor, destination);
  }
  update.complete(index);
}

}  // namespace

sconce_error* sconce_model_begin_update(sconce_model* model, const sconce_update_options* options,
                                        sconce_update** out) noexcept {
  return guarded([&] {
    required(out, "out");
    auto handle = std::make_unique<sconce_update>();
    handle->update = required(model, "model").model->begin_update(update_options_of(options));
    *out = handle.release();
  });
}

sconce_error* sconce_update_declare(sconce_update* update, const sconce_weight* given, size_t count) noexcept {
  return guarded([&] {
    check_no_stream(required(update, "update"));
    SCONCE_CHECK(given || count == 0, kInvalidArgument, "entries is null, and its count is ", count);
    std::vector<WeightEntry> entries;
    for (size_t i = 0; i < count; ++i) {
      WeightEntry& entry = entries.emplace_back(entry_of(given[i].name, i));
      const int32_t rank = given[i].ndim;
      const std::string what = "entry '" + entry.name + "'";
      entry.dtype = dtype_of(given[i].dtype, what);
      SCONCE_CHECK(rank >= 0 && rank <= Tensor::kMaxRank, kInvalidArgument, what, ": expected 0 to ", Tensor::kMaxRank,
                   " dimensions, got ", rank);
      SCONCE_CHECK(given[i].shape || rank == 0, kInvalidArgument, what, ": its shape is null");
      entry.shape.assign(given[i].shape, given[i].shape + rank);
    }
    update->update->declare(entries);
    update->entries = std::move(entries);
    update->declared = true;
  });
}

sconce_error* sconce_update_write(sconce_update* update, size_t entry, const sconce_tensor* tensor) noexcept {
  return guarded([&] {
    const WeightEntry& wanted = declared(required(update, "update"), entry);
    write(*update->update, entry, wanted, view_of(tensor, "constant '" + wanted.name + "'"));
  });
}

sconce_error* sconce_update_memory(sconce_update* update, size_t entry, void** bytes, size_t* size) noexcept {
  return guarded([&] {
    declared(required(update, "update"), entry);
    required(bytes, "bytes");
    const std::span<std::byte> memory = update->update->memory(entry);
    *bytes = memory.data();
    if (size) *size = memory.size();
  });
}

sconce_error* sconce_update_complete(sconce_update* update, size_t entry) noexcept {
  return guarded([&] {
    declared(required(update, "update"), entry);
    update->update->complete(entry);
  });
}

sconce_error* sconce_update_finish(sconce_update* update) noexcept {
  return guarded([&] {
    using Stream = sconce_update::Stream;
    const Stream state = required(update, "update").state;
    SCONCE_CHECK(state == Stream::kNone || state == Stream::kEnded, kFailedPrecondition, "the stream of weights has ",
                 state == Stream::kFailed ? "failed" : "not ended: call sconce_update_stream_end()");
    update->update->finish();
  });
}

void sconce_update_free(sconce_update* update) noexcept { delete update; }

sconce_error* sconce_model_stage_tensors(sconce_model* model, const char* const* names,
                                         const sconce_tensor* const* tensors, size_t count,
                                         const sconce_update_options* options) noexcept {
  return guarded([&] {
    Model& loaded = *required(model, "model").model;
    SCONCE_CHECK((names && tensors) || count == 0, kInvalidArgument, names ? "tensors" : "names",
                 " is null, and its count is ", count);
    std::vector<WeightEntry> entries;
    std::vector<Tensor> views;
    for (size_t i = 0; i < count; ++i) {
      WeightEntry& entry = entries.emplace_back(entry_of(names[i], i));
      const Tensor& view = views.emplace_back(view_of(tensors[i], "constant '" + entry.name + "'"));
      entry.dtype = view.dtype();
      entry.shape.assign(view.sizes().begin(), view.sizes().end());
    }
    const auto update = loaded.begin_update(update_options_of(options));
    update->declare(entries);
    for (size_t i = 0; i < count; ++i) write(*update, i, entries[i], views[i]);
    update->finish();
  });
}

sconce_error* sconce_model_stage_file(sconce_model* model, const char* path, const sconce_file_options* file_options,
                                      const sconce_update_options* options) noexcept {
  return guarded([&] {
    Model& loaded = *required(model, "model").model;
    const std::string name = text_of(path, "path");
    const auto given = taken(file_options, "file_options");
    FileOptions file;
    file.constants = loaded.constants();
    if (given.package_model) file.package_model = given.package_model;
    if (given.sha256) file.sha256 = digest_of(given.sha256, "file_options");
    if (given.progress)
      file.progress = [&](uint64_t done, uint64_t total) {
        SCONCE_CHECK(given.progress(given.context, done, total) == 0, kCancelled, "the caller stopped it after ", done,
                     " of ", total, " bytes: ", name);
      };
    const auto update = loaded.begin_update(update_options_of(options));
    stage_file(*update, name, file);
    update->finish();
  });
}
