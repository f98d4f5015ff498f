// Reaper: takes apart, on a thread of its own, what the io threads were the last to let go of: models and catalogs.
// Unmapping weights, joining lanes and closing libraries takes milliseconds that no request shall wait for.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

namespace sconce::server {

// Something that a reaper destroys.
class Reaped {
 public:
  virtual ~Reaped() = default;

 private:
  friend class Reaper;
  Reaped* next_ = nullptr;
};

// Thread-safe. Outlives the pointers that own() made.
class Reaper {
 public:
  Reaper();
  ~Reaper();  // when all that was let go of is gone

  // Shared from now on; whoever lets go of it last hands it to the reaper.
  template <class T>
  std::shared_ptr<T> own(std::unique_ptr<T> object) {
    return std::shared_ptr<T>(object.release(), [this](T* last) { take(const_cast<std::remove_const_t<T>*>(last)); });
  }

 private:
  void take(Reaped* object) noexcept;
  void run() noexcept;

  std::atomic<Reaped*> taken_{nullptr};  // the last one taken first
  Reaped end_;                           // stands for the end of work
  std::thread thread_;
};

}  // namespace sconce::server
