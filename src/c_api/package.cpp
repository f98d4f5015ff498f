// Packages in C: sconce_package_*.
#include "sconce/package.h"

#include <filesystem>
#include <memory>

#include "package_format/description.h"
#include "sconce/runnable.h"
#include "src/c_api/boundary.h"
#include "src/c_api/handles.h"
#include "src/c_api/options.h"
#include "src/c_api/structs.h"

using namespace sconce;
using namespace sconce::c_api;

namespace {

sconce_package* handle_of(std::shared_ptr<const Package> package) {
  auto handle = std::make_unique<sconce_package>();
  handle->package = std::move(package);
  for (const ModelSpec& spec : handle->package->models())
    handle->signatures.push_back(std::make_unique<const Signature>(spec));
  return handle.release();
}

const Signature& signature_of(const sconce_package* package, size_t model) {
  const auto& signatures = required(package, "package").signatures;
  SCONCE_CHECK(model < signatures.size(), kInvalidArgument, "package has no model ", model, ", only ",
               signatures.size());
  return *signatures[model];
}

}  // namespace

sconce_error* sconce_package_open(const char* path, sconce_package** out) noexcept {
  return guarded([&] {
    required(out, "out");
    *out = handle_of(Package::open(std::filesystem::path(text_of(path, "path"))));
  });
}

sconce_error* sconce_package_open_memory(const void* bytes, size_t size, const char* name,
                                         void (*release)(void* context), void* context, sconce_package** out) noexcept {
  struct Owner {
    void (*release)(void* context);
    void* context;
    ~Owner() {
      if (release) release(context);
    }
  } first{release, context};  // releases the bytes if no memory is left to share them
  return guarded([&] {
    auto owner = std::make_shared<Owner>(Owner{nullptr, context});
    owner->release = std::exchange(first.release, nullptr);
    required(out, "out");
    SCONCE_CHECK(bytes, kInvalidArgument, "bytes is null");
    *out = handle_of(
        Package::open({static_cast<const std::byte*>(bytes), size}, std::move(owner), name ? name : "<memory>"));
  });
}

void sconce_package_free(sconce_package* package) noexcept { delete package; }

sconce_error* sconce_package_verify(const sconce_package* package) noexcept {
  return guarded([&] { required(package, "package").package->verify(); });
}

size_t sconce_package_model_count(const sconce_package* package) noexcept {
  return package ? package->signatures.size() : 0;
}

sconce_error* sconce_package_model_name(const sconce_package* package, size_t index, const char** name) noexcept {
  return guarded([&] { required(name, "name") = signature_of(package, index).info().name; });
}

sconce_error* sconce_package_get_info(const sconce_package* package, size_t model, sconce_model_info* info) noexcept {
  return guarded([&] { put(info, "info", signature_of(package, model).info()); });
}

sconce_error* sconce_package_input(const sconce_package* package, size_t model, size_t index,
                                   sconce_tensor_info* info) noexcept {
  return guarded([&] { put(info, "info", signature_of(package, model).input(index)); });
}

sconce_error* sconce_package_output(const sconce_package* package, size_t model, size_t index,
                                    sconce_tensor_info* info) noexcept {
  return guarded([&] { put(info, "info", signature_of(package, model).output(index)); });
}

sconce_error* sconce_package_check(const sconce_package* package, const sconce_check_options* given) noexcept {
  return guarded([&] {
    const auto options = taken(given, "options");
    const auto libraries = paths_of(options.op_libraries, options.op_library_count, "op_libraries");
    check_runnable(*required(package, "package").package, options.model_name ? options.model_name : "", libraries);
  });
}

sconce_error* sconce_package_inspect(const sconce_package* package, char** json) noexcept {
  return guarded([&] {
    required(json, "json");
    *json = given(json_text(*required(package, "package").package));
  });
}
