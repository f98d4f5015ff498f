// Preloaded into the server by test_grpc_copies.py: adds up the bytes that memcpy and memmove copy in pieces of at
// least 1 KiB, in all threads, in the file COUNT_FILE, as one 64-bit number. Copies by the kernel, and those that a
// compiler put in place of a call, do not count.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tests/server/shared_counter.h"

namespace {

constexpr size_t kLeast = 1024;

void count(size_t bytes) noexcept {
  if (bytes < kLeast) return;
  if (std::atomic<uint64_t>* const c = counter()) c->fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace

// In assembly, as a compiler would turn a loop into a call of the same function.
extern "C" void* memcpy(void* to, const void* from, size_t bytes) noexcept {
  count(bytes);
  void* at = to;
  asm volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes) : : "memory");
  return to;
}

extern "C" void* memmove(void* to, const void* from, size_t bytes) noexcept {
  if (static_cast<const char*>(to) - static_cast<const char*>(from) <= 0 ||
      static_cast<const char*>(to) >= static_cast<const char*>(from) + bytes)
    return memcpy(to, from, bytes);
  count(bytes);
  void* at = static_cast<char*>(to) + bytes - 1;
  const void* last = static_cast<const char*>(from) + bytes - 1;
  asm volatile("std; rep movsb; cld" : "+D"(at), "+S"(last), "+c"(bytes) : : "memory");
  return to;
}
