// The function that calls the kernels, and owns objects meanwhile.
#include "sample_regions.h"

extern "C" void sample_kernel(const SampleWork& work);
extern "C" void sample_serial_kernel(const SampleWork& work);
extern "C" void sample_scratch_kernel(const SampleWork& work);
extern "C" void sample_serial_scratch_kernel(const SampleWork& work);
extern "C" void sample_vector_kernel(const SampleWork& work);
extern "C" void sample_catching_kernel(const SampleWork& work);
extern "C" void sample_nested_kernel(const SampleWork& work);

namespace {

volatile int objects = 0;  // volatile: a compiler may drop both changes if nothing can come between
struct Object {
  Object() { objects = objects + 1; }
  ~Object() { objects = objects - 1; }
};

}  // namespace

extern "C" [[gnu::visibility("default")]] void sample_call(const SampleWork& work) {
  const Object object;
  sample_kernel(work);
}
extern "C" [[gnu::visibility("default")]] void sample_serial_call(const SampleWork& work) {
  const Object object;
  sample_serial_kernel(work);
}
extern "C" [[gnu::visibility("default")]] void sample_scratch_call(const SampleWork& work) {
  const Object object;
  sample_scratch_kernel(work);
}
extern "C" [[gnu::visibility("default")]] void sample_serial_scratch_call(const SampleWork& work) {
  const Object object;
  sample_serial_scratch_kernel(work);
}
extern "C" [[gnu::visibility("default")]] void sample_vector_call(const SampleWork& work) {
  const Object object;
  sample_vector_kernel(work);
}
extern "C" [[gnu::visibility("default")]] void sample_catching_call(const SampleWork& work) {
  const Object object;
  sample_catching_kernel(work);
}
extern "C" [[gnu::visibility("default")]] void sample_nested_call(const SampleWork& work) {
  const Object object;
  sample_nested_kernel(work);
}
extern "C" [[gnu::visibility("default")]] int sample_objects() { return objects; }
