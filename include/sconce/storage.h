// Storage: reference-counted memory on one device, shared by the tensors that view it.
//
// The reference count and derived() are thread-safe. Callers synchronise access to the bytes.
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

// Identifies one value computed from a storage. `kind` is the address of a static variable of the code that computes
// it.
struct DerivedKey {
  const void* kind = nullptr;
  std::array<int64_t, 7> parameters{};
  friend bool operator==(const DerivedKey&, const DerivedKey&) = default;
};

class Storage {
 public:
  // A source that can supply the bytes again at any time, such as a mapped file.
  class Source {
   public:
    // Frees the memory that holds these bytes until they are read again. Any thread, also during reads.
    virtual void give_up(const void* bytes, size_t count) noexcept = 0;

   protected:
    ~Source() = default;
  };

  // Frees the bytes. Called once, on the thread that drops the last reference.
  using Release = void (*)(void* data, size_t bytes, void* context) noexcept;

  Storage(void* data, size_t bytes, Device device, Release release, void* context) noexcept
      : data_(data), bytes_(bytes), release_(release), context_(context), device_(device) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const noexcept { return data_; }
  size_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }

  // True for constants: their bytes never change, so values may be derived from them.
  bool immutable() const noexcept { return immutable_; }
  void set_immutable(bool value) noexcept { immutable_ = value; }

  // True for constants whose context is a Source: their memory can be freed between reads.
  bool has_source() const noexcept { return source_; }
  // `context` of the constructor is this Source, converted to void*.
  void set_source() noexcept { source_ = true; }
  // Tells the source, if there is one, that a derived value replaces the bytes from `offset` on.
  void give_up(size_t offset) noexcept {
    if (source_)
      static_cast<Source*>(context_)->give_up(static_cast<const std::byte*>(data_) + offset, bytes_ - offset);
  }

  // The layout of an opaque (oneDNN-packed) tensor: the bytes of its dnnl_memory_desc_t, then an int32 group count.
  const std::vector<std::byte>* opaque_metadata() const noexcept { return opaque_.get(); }
  void set_opaque_metadata(std::vector<std::byte> bytes);

  // A value computed from a storage's bytes, and the memory that it holds. Null: there is no value.
  struct Value {
    Value(std::nullptr_t) noexcept {}
    // For a small object: its memory is its own size.
    template <class T>
    Value(std::shared_ptr<T> value) noexcept : Value(std::move(value), sizeof(T)) {}
    Value(std::shared_ptr<void> value, size_t bytes) noexcept
        : value(std::move(value)), bytes(this->value ? bytes : 0) {}
    std::shared_ptr<void> value;
    size_t bytes = 0;
  };
  // Computes a value from a storage's bytes. It may outlive the storage it was made for, so it must not refer to any.
  using Derive = std::function<Value(Storage& from)>;
  // Returns a value that is computed from the bytes once and has their lifetime (for example a repacked weight).
  // Requires immutable(). A lookup takes no lock. The computation holds the storage's own lock, so only threads that
  // need a value of this storage wait.
  void* derived(const DerivedKey& key, const std::function<Derive()>& how);
  // Returns the value if it was computed already, else null.
  void* known(const DerivedKey& key) const noexcept;
  // Computes now every value that `other`, a storage of the same layout, has, so that no later run waits for it.
  void derive_as(const Storage& other);
  // Memory of the values computed so far. Takes no lock.
  uint64_t derived_bytes() const noexcept;
  static uint64_t derivations() noexcept;  // values computed so far in this process

  // Replaces the bytes (resize_, set_). No other thread may be reading them.
  void reset(void* data, size_t bytes, Release release, void* context) noexcept;

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  // A thread that reads 1 is the only owner and sees all writes of earlier owners.
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
  bool immutable_ = false, source_ = false;
  std::unique_ptr<std::vector<std::byte>> opaque_;
  std::atomic<Derived*> derived_{nullptr};
  std::atomic<const void*> maker_{nullptr};  // the thread that derives
};

// Owns one reference.
class StoragePtr {
 public:
  StoragePtr() noexcept = default;
  static StoragePtr adopt(Storage* storage) noexcept {  // takes over the reference that the constructor made
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
