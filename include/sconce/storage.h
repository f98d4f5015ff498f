// Storage: a reference-counted run of bytes on one device, shared by the tensors that view it.
//
// Thread-safe: the count and derived(). The bytes themselves are the caller's business.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "sconce/device.h"

namespace sconce {

// Names one value computed from a storage: `kind` is the address of a static of the computing code.
struct DerivedKey {
  const void* kind = nullptr;
  std::array<int64_t, 7> parameters{};
  friend bool operator==(const DerivedKey&, const DerivedKey&) = default;
};

class Storage {
 public:
  // Frees the bytes. Called once, when the last reference goes, on whatever thread that happens.
  using Release = void (*)(void* data, size_t bytes, void* context) noexcept;

  Storage(void* data, size_t bytes, Device device, Release release, void* context) noexcept
      : data_(data), bytes_(bytes), release_(release), context_(context), device_(device) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const noexcept { return data_; }
  size_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }

  // True for constants: the bytes do not change while the storage lives, so values may be derived from them.
  bool immutable() const noexcept { return immutable_; }
  void set_immutable(bool value) noexcept { immutable_ = value; }

  // Layout description of an opaque (oneDNN-packed) tensor: dnnl_memory_desc_t bytes and an int32 group count.
  const std::vector<std::byte>* opaque_metadata() const noexcept { return opaque_.get(); }
  void set_opaque_metadata(std::vector<std::byte> bytes);

  // How a value comes from the bytes of a storage. It may outlive the one that it was made for, and refers to none.
  using Derive = std::function<std::shared_ptr<void>(Storage& from)>;
  // A value computed from the bytes once and kept as long as they live (a repacked weight, say). Requires immutable().
  // Found without a lock; made under the storage's own, so that only who needs a value of the same bytes waits for it.
  void* derived(const DerivedKey& key, const std::function<Derive()>& how);
  // Computes what the other has, whose bytes have the same layout: so that nobody waits for it later.
  void derive_as(const Storage& other);
  static uint64_t derivations() noexcept;  // made so far in this process

  // Replaces the bytes of a storage that nobody else reads meanwhile (resize_, set_).
  void reset(void* data, size_t bytes, Release release, void* context) noexcept;

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  // Who finds 1 sees all that the others did with the bytes: nobody else has them any more.
  uint32_t references() const noexcept { return references_.load(std::memory_order_acquire); }

 private:
  struct Derived;
  ~Storage();
  void destroy() noexcept;
  const Derived* find_derived(const DerivedKey& key) const noexcept;
  void* derive(const DerivedKey& key, Derive how);

  void* data_;
  size_t bytes_;
  Release release_;
  void* context_;
  std::atomic<uint32_t> references_{1};
  Device device_;
  bool immutable_ = false;
  std::unique_ptr<std::vector<std::byte>> opaque_;
  std::atomic<Derived*> derived_{nullptr};
  std::atomic<const void*> maker_{nullptr};  // names the thread that derives
};

// Owns one reference.
class StoragePtr {
 public:
  StoragePtr() noexcept = default;
  static StoragePtr adopt(Storage* storage) noexcept {  // takes over the reference the storage was born with
    StoragePtr p;
    p.storage_ = storage;
    return p;
  }
  static StoragePtr share(Storage& storage) noexcept {
    storage.retain();
    return adopt(&storage);
  }
  StoragePtr(const StoragePtr& other) noexcept : storage_(other.storage_) {
    if (storage_) storage_->retain();
  }
  StoragePtr(StoragePtr&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
  StoragePtr& operator=(StoragePtr other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StoragePtr() {
    if (storage_) storage_->release();
  }
  Storage* get() const noexcept { return storage_; }
  Storage* operator->() const noexcept { return storage_; }
  Storage& operator*() const noexcept { return *storage_; }
  explicit operator bool() const noexcept { return storage_ != nullptr; }
  friend bool operator==(const StoragePtr& a, const StoragePtr& b) noexcept { return a.storage_ == b.storage_; }

 private:
  Storage* storage_ = nullptr;
};

}  // namespace sconce
