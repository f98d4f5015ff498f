// The functions that the interposer hides.
//
// All are looked up while the library is loaded, because dlsym() within dlerror(), which allocates, frees the object
// that dlerror() then writes to. Only functions that are called even earlier look up their own.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace sconce::faults {

template <class Function>
class Original {
 public:
  constexpr explicit Original(const char* name) noexcept : name_(name) {}
  // Null if no library has it. Threads may look it up at the same time; they find the same.
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
