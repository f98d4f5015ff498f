// Module: the code of one model in this process, and the addresses of its stored constants.
//
// Immutable once loaded; shared by the containers made from it. The last container unloads it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sconce/package.h"
#include "sconce/tensor.h"
#include "src/custom_ops/extern_nodes.h"
#include "src/device/device_backend.h"
#include "src/loader/container_api.h"
#include "src/loader/library/shared_library.h"

namespace sconce::loader {

struct ContainerConstant;

// Bytes of the archive as a constant's storage, which keeps the package and its mapping alive.
StoragePtr archived_storage(std::shared_ptr<const Package> package, const std::byte* bytes, size_t size, Device device);

// The symbols that the model's code imports. kCorruptPackage.
std::vector<std::string> imports_of(const Package& package, const ModelSpec& spec);

class Module {
 public:
  ~Module();
  // Runs preflight, copies, applies fixups, calls dlopen. kIncompatible, kCorruptPackage, kIo.
  static std::shared_ptr<const Module> load(std::shared_ptr<const Package> package, const ModelSpec& spec);

  const ContainerApi& api() const noexcept { return api_; }
  const ModelSpec& spec() const noexcept { return *spec_; }
  const std::shared_ptr<const Package>& package() const noexcept { return package_; }
  // The operators that the code calls through the proxy executor; null if there are none.
  const std::shared_ptr<const custom_ops::ExternNodes>& extern_nodes() const noexcept { return extern_nodes_; }
  // The .so inside the archive mapping.
  std::span<const std::byte> image() const noexcept { return image_; }
  // For each input of a package without source: its minimum rank.
  const std::vector<int>& least_ranks() const noexcept { return least_ranks_; }
  // External weights (binary blob), empty otherwise.
  std::span<const std::byte> blob() const noexcept { return blob_; }
  // Constants that the package keeps outside its code, in the container's order of stored constants; undefined if it
  // has none.
  std::vector<Tensor> outside_constants(std::span<const ContainerConstant> constants) const;
  // The archive's bytes that correspond to the loaded library's bytes from `address` to the end of its constants; empty
  // if `address` is outside.
  std::span<const std::byte> archived(const void* address) const noexcept;
  // Whether the loaded library lacks its constants, so that they must be traced to the archive.
  bool has_holes() const noexcept { return has_holes_; }
  // Faults of the library's code.
  uint64_t damage() const noexcept { return library_.damage(); }
  uint64_t loss() const noexcept { return library_.loss(); }
  const char* reported_name() const noexcept { return library_.reported_name(); }
  // Compiled device code, for the scope of calls into the model; null for the CPU.
  const DeviceFiles* device_files() const noexcept { return device_files_.get(); }

 private:
  Module() = default;
  std::shared_ptr<const Package> package_;
  const ModelSpec* spec_ = nullptr;
  std::span<const std::byte> image_, blob_;
  std::shared_ptr<const custom_ops::ExternNodes> extern_nodes_;
  SharedLibrary library_;
  ContainerApi api_;
  std::vector<int> least_ranks_;
  const std::byte* constants_begin_ = nullptr;  // in the loaded library
  size_t constants_size_ = 0;
  const std::byte* constants_archived_ = nullptr;
  bool has_holes_ = false;
  std::unique_ptr<const DeviceFiles> device_files_;
};

}  // namespace sconce::loader
