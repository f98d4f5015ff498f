// A shared object with the properties of compiled models that loading has to handle: dependencies on libtorch libraries
// that do not exist, an executable stack, STB_GNU_UNIQUE symbols, thread-local objects with destructors, and weights.
#include <cstdlib>
#include <cstring>
#include <regex>
#include <stdexcept>
#include <string>

#define SAMPLE_EXPORT extern "C" [[gnu::visibility("default")]]

namespace {

struct AtUnload {
  int* counter = nullptr;
  ~AtUnload() {
    if (counter) ++*counter;
  }
} at_unload;

struct Text {
  std::string value;
  int* counter = nullptr;
  ~Text() {
    if (counter) ++*counter;
  }
};
thread_local Text text;

}  // namespace

template <class T>
struct [[gnu::visibility("default")]] Counted {
  static int count;
};
template <class T>
int Counted<T>::count = 0;

SAMPLE_EXPORT int sample_unique() { return ++Counted<int>::count; }
SAMPLE_EXPORT void sample_count_unload(int* counter) { at_unload.counter = counter; }
// Makes the calling thread's object, which counts its own end.
SAMPLE_EXPORT const char* sample_text(const char* value, int* counter) {
  text.value = value;
  text.counter = counter;
  return text.value.c_str();
}
SAMPLE_EXPORT void sample_copy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
SAMPLE_EXPORT void* sample_allocate(size_t bytes) { return std::malloc(bytes); }
SAMPLE_EXPORT int sample_matches(const char* value) { return std::regex_match(value, std::regex("cuda(:[0-9]+)?")); }
SAMPLE_EXPORT void sample_throw(const char* what) { throw std::runtime_error(what); }

extern "C" int sconce_sample_absent(int) __attribute__((weak));
SAMPLE_EXPORT int sample_weak() { return sconce_sample_absent ? 1 : 0; }

extern "C" long __isoc23_strtol(const char*, char**, int);
SAMPLE_EXPORT long sample_binary(const char* value) { return __isoc23_strtol(value, nullptr, 0); }

SAMPLE_EXPORT void* (*const sample_malloc_pointer)(size_t) = &std::malloc;
