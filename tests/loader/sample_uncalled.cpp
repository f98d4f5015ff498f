// Names of libtorch that inline functions of its headers mention.
namespace c10 {
struct SymInt {
  long number;
  long guard_int(const char* file, long line) const;
};
struct UndefinedTensorImpl {
  static long _singleton;
};
}  // namespace c10
extern "C" [[gnu::visibility("default")]] long sample_uncalled(const c10::SymInt* given) {
  return given ? given->guard_int("sample_uncalled.cpp", 12) : 7;
}
extern "C" [[gnu::visibility("default")]] long* sample_singleton() { return &c10::UndefinedTensorImpl::_singleton; }
extern "C" [[gnu::visibility("default")]] int AOTInductorModelContainerCreateWithDevice() { return 1; }
extern "C" [[gnu::visibility("default")]] int AOTInductorModelContainerRun() { return 1; }
extern "C" [[gnu::visibility("default")]] int AOTInductorModelContainerGetConstantType() { return 1; }
