// The library that lazy_library_test.cpp opens lazily.
#include <cstdarg>
#include <cstdint>

extern "C" double lazy_fixture_mixed(int64_t a, double x, int64_t b, double y, int64_t c, double z, int64_t d, double w,
                                     int64_t e, double v, int64_t f, double u, int64_t g, double t, int64_t h, double s,
                                     double on_stack) {
  // Each argument has a digit of its own, so that a lost or swapped register shows.
  return 1e0 * a + 1e1 * b + 1e2 * c + 1e3 * d + 1e4 * e + 1e5 * f + 1e6 * g + 1e7 * h + 1e-1 * x + 1e-2 * y +
         1e-3 * z + 1e-4 * w + 1e-5 * v + 1e-6 * u + 1e-7 * t + 1e-8 * s + 100e6 * on_stack;
}

extern "C" double lazy_fixture_sum(int count, ...) {
  std::va_list values;
  va_start(values, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += va_arg(values, double);
  va_end(values);
  return sum;
}

struct LazyFixtureBig {
  int64_t values[5];
};
extern "C" LazyFixtureBig lazy_fixture_struct(int64_t first) {
  return {{first, first + 1, first + 2, first + 3, first + 4}};
}

extern "C" int64_t lazy_racing_identity(int64_t value) { return value; }
