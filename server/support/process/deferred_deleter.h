// DeferredDeleter: a thread that destroys models and catalogs whose last reference an I/O thread has dropped. Unmapping
// weights, joining replica threads and closing libraries takes milliseconds, and must not delay requests.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

namespace sconce::server {

// Base class of objects that a DeferredDeleter destroys.
class DeletedLater {
 public:
  virtual ~DeletedLater() = default;

 private:
  friend class DeferredDeleter;
  DeletedLater* next_ = nullptr;
};

// Thread-safe. Outlives the pointers that own() returned.
class DeferredDeleter {
 public:
  DeferredDeleter();
  ~DeferredDeleter();  // waits until all dropped objects are destroyed

  // Returns a shared pointer; dropping its last reference queues the object for destruction on the thread.
  template <class T>
  std::shared_ptr<T> own(std::unique_ptr<T> object) {
    return std::shared_ptr<T>(object.release(), [this](T* last) { take(const_cast<std::remove_const_t<T>*>(last)); });
  }

 private:
  void take(DeletedLater* object) noexcept;
  void run() noexcept;

  std::atomic<DeletedLater*> taken_{nullptr};  // newest first
  DeletedLater end_;                           // marks the end of the queue
  std::thread thread_;
};

}  // namespace sconce::server
