// DeferredDeleter: a thread that destroys models and catalogs whose last reference an I/O thread dropped. Unmapping
// weights, joining lanes and closing libraries takes milliseconds, which no request should wait for.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

namespace sconce::server {

// An object that a reaper destroys.
class DeletedLater {
 public:
  virtual ~DeletedLater() = default;

 private:
  friend class DeferredDeleter;
  DeletedLater* next_ = nullptr;
};

// Thread-safe. Outlives the pointers that own() made.
class DeferredDeleter {
 public:
  DeferredDeleter();
  ~DeferredDeleter();  // waits until everything dropped is destroyed

  // Makes a shared pointer; dropping its last reference gives the object to the reaper.
  template <class T>
  std::shared_ptr<T> own(std::unique_ptr<T> object) {
    return std::shared_ptr<T>(object.release(), [this](T* last) { take(const_cast<std::remove_const_t<T>*>(last)); });
  }

 private:
  void take(DeletedLater* object) noexcept;
  void run() noexcept;

  std::atomic<DeletedLater*> taken_{nullptr};  // newest first
  DeletedLater end_;                           // marks the end of work
  std::thread thread_;
};

}  // namespace sconce::server
