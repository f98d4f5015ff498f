// __isoc23_*: the names by which code compiled against glibc 2.38 or later calls strtol, sscanf and similar functions.
// Sconce exports them so that such a model loads on an older glibc, and calls the C library's own functions if it has
// them. Matches glibc 2.38 (base 0 and 2 accept a 0b prefix), except for scanf's %i and %b, which an older scanf
// lacks.
#include <dlfcn.h>

#include <cctype>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cwchar>
#include <cwctype>

extern "C" {

// Declared by assembler name, because <cstdlib> of a newer glibc would redirect the usual names back to these
// functions.
#define SCONCE_OLD(result, name, Char) result sconce_old_##name(const Char* text, Char** end, int base) __asm__(#name)
SCONCE_OLD(long, strtol, char);
SCONCE_OLD(unsigned long, strtoul, char);
SCONCE_OLD(long long, strtoll, char);
SCONCE_OLD(unsigned long long, strtoull, char);
SCONCE_OLD(intmax_t, strtoimax, char);
SCONCE_OLD(uintmax_t, strtoumax, char);
SCONCE_OLD(long, wcstol, wchar_t);
SCONCE_OLD(unsigned long, wcstoul, wchar_t);
SCONCE_OLD(long long, wcstoll, wchar_t);
SCONCE_OLD(unsigned long long, wcstoull, wchar_t);
#undef SCONCE_OLD
int __isoc99_vsscanf(const char* text, const char* format, va_list arguments);
int __isoc99_vfscanf(FILE* file, const char* format, va_list arguments);
int __isoc99_vscanf(const char* format, va_list arguments);

}  // extern "C"

namespace {

// The C library's own function of that name; null if the library is too old.
template <class F>
F* newer(F*, const char* name) {
  static void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return libc ? reinterpret_cast<F*>(dlsym(libc, name)) : nullptr;
}

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_space(wchar_t c) { return std::iswspace(static_cast<wint_t>(c)) != 0; }

// If the text starts with [space][sign]0b[01], returns the digits after 0b, else null.
template <class Char>
const Char* behind_binary_prefix(const Char* text, bool* negative) {
  while (is_space(*text)) ++text;
  *negative = *text == '-';
  if (*text == '-' || *text == '+') ++text;
  if (text[0] != '0' || (text[1] != 'b' && text[1] != 'B') || (text[2] != '0' && text[2] != '1')) return nullptr;
  return text + 2;
}

// The sign precedes the prefix, so the conversion of the digits would miss it; this code puts it in front of the
// digits.
template <class Result, class Char>
Result convert(Result (*old)(const Char*, Char**, int), const Char* text, Char** end, int base) {
  bool negative = false;
  const Char* digits = base == 0 || base == 2 ? behind_binary_prefix(text, &negative) : nullptr;
  if (!digits) return old(text, end, base);
  constexpr size_t kMaxDigits = 65;  // one more than fit, so the result still overflows
  Char signed_digits[2 + kMaxDigits + 1];
  size_t size = 0;
  signed_digits[size++] = negative ? '-' : '+';
  signed_digits[size++] = '0';
  while (*digits == '0') ++digits;
  const Char* last = digits;
  for (; *last == '0' || *last == '1'; ++last)
    if (size < 2 + kMaxDigits) signed_digits[size++] = *last;
  signed_digits[size] = 0;
  if (end) *end = const_cast<Char*>(last);
  return old(signed_digits, nullptr, 2);
}

}  // namespace

extern "C" {

#define SCONCE_CONVERT(result, name, Char)                                 \
  result __isoc23_##name(const Char* text, Char** end, int base) {         \
    static const auto theirs = newer(&__isoc23_##name, "__isoc23_" #name); \
    if (theirs) return theirs(text, end, base);                            \
    return convert<result, Char>(&sconce_old_##name, text, end, base);     \
  }
SCONCE_CONVERT(long, strtol, char)
SCONCE_CONVERT(unsigned long, strtoul, char)
SCONCE_CONVERT(long long, strtoll, char)
SCONCE_CONVERT(unsigned long long, strtoull, char)
SCONCE_CONVERT(intmax_t, strtoimax, char)
SCONCE_CONVERT(uintmax_t, strtoumax, char)
SCONCE_CONVERT(long, wcstol, wchar_t)
SCONCE_CONVERT(unsigned long, wcstoul, wchar_t)
SCONCE_CONVERT(long long, wcstoll, wchar_t)
SCONCE_CONVERT(unsigned long long, wcstoull, wchar_t)
#undef SCONCE_CONVERT

int __isoc23_vsscanf(const char* text, const char* format, va_list arguments) {
  static const auto theirs = newer(&__isoc23_vsscanf, "__isoc23_vsscanf");
  return (theirs ? theirs : __isoc99_vsscanf)(text, format, arguments);
}
int __isoc23_vfscanf(FILE* file, const char* format, va_list arguments) {
  static const auto theirs = newer(&__isoc23_vfscanf, "__isoc23_vfscanf");
  return (theirs ? theirs : __isoc99_vfscanf)(file, format, arguments);
}
int __isoc23_vscanf(const char* format, va_list arguments) {
  static const auto theirs = newer(&__isoc23_vscanf, "__isoc23_vscanf");
  return (theirs ? theirs : __isoc99_vscanf)(format, arguments);
}
int __isoc23_sscanf(const char* text, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = __isoc23_vsscanf(text, format, arguments);
  va_end(arguments);
  return result;
}
int __isoc23_fscanf(FILE* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = __isoc23_vfscanf(file, format, arguments);
  va_end(arguments);
  return result;
}
int __isoc23_scanf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = __isoc23_vscanf(format, arguments);
  va_end(arguments);
  return result;
}

}  // extern "C"
