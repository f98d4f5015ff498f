// Imports strtol as code compiled against a glibc of the future does.
extern "C" long __isoc23_strtol(const char*, char**, int);
extern "C" [[gnu::visibility("default")]] long sample_binary(const char* value) {
  return __isoc23_strtol(value, nullptr, 0);
}
