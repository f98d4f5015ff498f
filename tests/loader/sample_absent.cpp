extern "C" [[gnu::visibility("default")]] int absent_function(int x) { return x; }
