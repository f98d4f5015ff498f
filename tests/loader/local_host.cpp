// Opens local_plugin.so as a host such as Python does. Exit status 0 if models load there.
#include <dlfcn.h>

#include <cstdio>

int main(int, char** arguments) {
  void* plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!plugin) {
    std::printf("%s\n", dlerror());
    return 1;
  }
  if (dlsym(RTLD_DEFAULT, "__isoc23_sscanf") && dlsym(RTLD_DEFAULT, "Sleef_expf8_u10")) {
    std::printf("libsconce's symbols are global: this proves nothing\n");
    return 1;
  }
  const char* failed = reinterpret_cast<const char* (*)()>(dlsym(plugin, "load_samples"))();
  std::printf("%s\n", failed);
  return *failed != 0;
}
