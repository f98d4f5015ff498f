// Definitions and kernels that a library of custom operators registers while it is opened, through PyTorch's stable
// ABI (STABLE_TORCH_LIBRARY) or through include/sconce/custom_op.h.
//
// Registration happens on the thread that opens the library, inside a Collection. The Collection gathers errors,
// because exceptions must not pass through the dynamic linker.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/custom_op.h"
#include "src/custom_ops/registry.h"
#include "src/custom_ops/stable_values.h"

namespace sconce::custom_ops {

using StableKernel = void (*)(StableIValue* stack, uint64_t arguments, uint64_t results);

// Where a kernel runs: PyTorch's dispatch keys. Others (autograd, tracing) are accepted but never called.
enum class KernelKey : uint8_t { kCpu, kCuda, kCompositeExplicit, kCompositeImplicit, kCount };

// A custom operator. The device of the tensors selects the kernel; if there is none for that device, a composite
// kernel runs.
class CustomOperator final : public Operator {
 public:
  explicit CustomOperator(Schema schema) : Operator(std::move(schema)) {}

  void call(std::span<Value> arguments, std::span<Value> results) const override;
  bool runnable() const noexcept override;
  // Throws kAlreadyExists for a second kernel with the same key.
  void set_kernel(KernelKey key, StableKernel kernel);
  void set_kernel(SconceKernel kernel, void* context);

 private:
  StableKernel kernel_for(std::span<Value> arguments) const;
  void call_stable(StableKernel kernel, std::span<Value> arguments, std::span<Value> results) const;
  void call_plain(std::span<Value> arguments, std::span<Value> results) const;

  StableKernel kernels_[static_cast<size_t>(KernelKey::kCount)] = {};
  SconceKernel plain_ = nullptr;
  void* context_ = nullptr;
};

// One STABLE_TORCH_LIBRARY block: TorchLibraryOpaque.
struct LibraryBlock {
  std::string ns;
  std::optional<KernelKey> key;  // set for blocks with kernels
  bool ignored = false;          // its kernels are never called when serving
};

class Collection {
 public:
  Collection();  // active on this thread during its lifetime; does not nest
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;
  ~Collection();
  static Collection* current() noexcept;

  // The functions of the ABI. They gather errors and throw only std::bad_alloc.
  LibraryBlock* open_block(const char* ns, const char* key);
  void define(const std::string& ns, const char* schema);
  void implement(const LibraryBlock& block, const char* name, StableKernel kernel);
  void define_plain(const char* schema, SconceKernel kernel, void* context);
  void add_error(std::string text);

  // Makes the registered operators visible to find_operator() until the result is destroyed. Throws kIncompatible,
  // listing all errors.
  std::vector<std::unique_ptr<Registration>> finish(const std::string& library);
  bool empty() const noexcept { return operators_.empty() && pending_.empty(); }

 private:
  struct Pending {  // a kernel may arrive before its definition
    std::string name;
    KernelKey key;
    StableKernel kernel;
  };
  std::vector<std::shared_ptr<CustomOperator>> operators_;
  std::vector<Pending> pending_;
  std::vector<std::string> errors_;
};

// The functions of the plain interface.
const SconceHost& plain_host() noexcept;

}  // namespace sconce::custom_ops
