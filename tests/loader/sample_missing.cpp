// Imports what no build of sconce has: a foreign kernel, C++ ATen, and a custom operator's C function.
extern "C" int aoti_torch_cuda_no_such_kernel(int);
extern "C" int aoti_torch_cpu_no_such_kernel(int);
extern "C" int my_custom_operator(int);
namespace at {
int no_such_function(int);
}
extern "C" [[gnu::visibility("default")]] int sample_missing(int x) {
  return aoti_torch_cuda_no_such_kernel(x) + aoti_torch_cpu_no_such_kernel(x) + my_custom_operator(x) +
         at::no_such_function(x);
}
