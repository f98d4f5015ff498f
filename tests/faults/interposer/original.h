// The functions that the interposer stands in front of.
//
// All are found while the library is loaded: dlsym() in the midst of dlerror(), which allocates, frees the object that
// dlerror() goes on to write to. Only what is called still earlier looks for its own.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace sconce::faults {

template <class Function>
class Original {
 public:
  constexpr explicit Original(const char* name) noexcept : name_(name) {}
  // Null where no library has one. Threads may look at the same time: they find the same.
  Function* find() noexcept {
    void* address = address_.load(std::memory_order_relaxed);
    if (address == nullptr) {
      address = ::dlsym(RTLD_NEXT, name_);
      address_.store(address, std::memory_order_relaxed);
    }
    return reinterpret_cast<Function*>(address);
  }

 private:
  const char* name_;
  std::atomic<void*> address_ = nullptr;
};

}  // namespace sconce::faults

// The original of `name`, as real_NAME.find().
#define SCONCE_ORIGINAL(name, ...)                                    \
  constinit sconce::faults::Original<__VA_ARGS__> real_##name{#name}; \
  __attribute__((constructor)) void find_##name() noexcept { real_##name.find(); }
