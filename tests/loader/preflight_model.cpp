// Exports what models export; macros select its imports. Nothing here is ever called.
#define EXPORT extern "C" [[gnu::visibility("default")]]

EXPORT int AOTInductorModelContainerCreateWithDevice() { return 1; }
EXPORT int AOTInductorModelContainerRun() { return 1; }
#ifndef PREFLIGHT_OLD
EXPORT int AOTInductorModelContainerGetConstantType() { return 1; }
#endif

extern "C" {
#ifdef PREFLIGHT_MISSING
int aoti_torch_cuda_no_such_kernel(int);
int aoti_torch_cpu_no_such_kernel(int);
int my_custom_operator(int);
#endif
#ifdef PREFLIGHT_FUTURE
long __isoc23_strtol(const char*, char**, int);
int future_function(int);
#endif
#ifdef PREFLIGHT_ABSENT
int absent_function(int);
#endif
#ifdef PREFLIGHT_SLEEF
int Sleef_expf8_u10(int);
#endif
int weak_function(int) __attribute__((weak));
}
namespace at {
int no_such_function(int);
int get_num_threads();
}  // namespace at

// Makes the linker need the dynamic linker itself, as models of torch 2.13 and later do.
thread_local int per_thread = 0;
EXPORT int* preflight_thread_local() { return &per_thread; }

EXPORT int preflight_imports(int x) {
#ifdef PREFLIGHT_MISSING
  x += aoti_torch_cuda_no_such_kernel(x) + aoti_torch_cpu_no_such_kernel(x) + my_custom_operator(x) +
       at::no_such_function(x);
#endif
#ifdef PREFLIGHT_FUTURE
  x += future_function(static_cast<int>(__isoc23_strtol("1", nullptr, 0)));
#endif
#ifdef PREFLIGHT_ABSENT
  x += absent_function(x);
#endif
#ifdef PREFLIGHT_SLEEF
  x += Sleef_expf8_u10(x);
#endif
  return weak_function ? weak_function(x) : at::get_num_threads() + x;
}
