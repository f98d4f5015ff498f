// Stands for a libc newer than any: only the name and version of its functions matter, when something is linked to it.
extern "C" [[gnu::visibility("default")]] long __isoc23_strtol(const char*, char**, int) { return 0; }
extern "C" [[gnu::visibility("default")]] int future_function(int) { return 0; }
