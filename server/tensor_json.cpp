#include "server/tensor_json.h"

#include <bit>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>

#include "sconce/check.h"
#include "server/small_floats.h"

namespace sconce {
namespace {

// Elements that need a conversion, as types of their own.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
template <DType dtype>
struct Float8 {
  uint8_t bits;
};

// Calls f.template operator()<T>() with the C++ type that stands for dtype.
template <class F>
auto with_element_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kUInt8:
      return f.template operator()<uint8_t>();
    case DType::kInt8:
      return f.template operator()<int8_t>();
    case DType::kInt16:
      return f.template operator()<int16_t>();
    case DType::kInt32:
      return f.template operator()<int32_t>();
    case DType::kInt64:
      return f.template operator()<int64_t>();
    case DType::kUInt16:
      return f.template operator()<uint16_t>();
    case DType::kUInt32:
      return f.template operator()<uint32_t>();
    case DType::kUInt64:
      return f.template operator()<uint64_t>();
    case DType::kFloat32:
      return f.template operator()<float>();
    case DType::kFloat64:
      return f.template operator()<double>();
    case DType::kBool:
      return f.template operator()<bool>();
    case DType::kFloat16:
      return f.template operator()<Half>();
    case DType::kBFloat16:
      return f.template operator()<BFloat>();
    case DType::kFloat8E5M2:
      return f.template operator()<Float8<DType::kFloat8E5M2>>();
    case DType::kFloat8E4M3FN:
      return f.template operator()<Float8<DType::kFloat8E4M3FN>>();
    case DType::kFloat8E5M2FNUZ:
      return f.template operator()<Float8<DType::kFloat8E5M2FNUZ>>();
    case DType::kFloat8E4M3FNUZ:
      return f.template operator()<Float8<DType::kFloat8E4M3FNUZ>>();
    case DType::kFloat8E8M0FNU:
      return f.template operator()<Float8<DType::kFloat8E8M0FNU>>();
    case DType::kComplex32:
    case DType::kComplex64:
    case DType::kComplex128:
    case DType::kFloat4E2M1FNx2:
      break;
  }
  SCONCE_FAIL(kInvalidArgument, "elements of this dtype have no JSON form, send bytes: ", dtype_name(dtype));
}

constexpr std::array<double, 23> kPow10 = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                           1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
// 10^-22 to 10^22, each rounded once.
constexpr std::array<double, 45> kScale = {
    1e-22, 1e-21, 1e-20, 1e-19, 1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8,
    1e-7,  1e-6,  1e-5,  1e-4,  1e-3,  1e-2,  1e-1,  1e0,   1e1,   1e2,   1e3,   1e4,   1e5,   1e6,  1e7,
    1e8,   1e9,   1e10,  1e11,  1e12,  1e13,  1e14,  1e15,  1e16,  1e17,  1e18,  1e19,  1e20,  1e21, 1e22};
constexpr std::array<long double, 28> kPow10L = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                                 1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                                 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

inline unsigned digit(char c) noexcept { return static_cast<unsigned char>(c) - '0'; }

constexpr std::array<uint64_t, 9> kPow10U = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// Digits at the start of the eight bytes at p: how many, and their value. No branch depends on the data.
inline unsigned digit_run(const char* p, uint64_t& value) noexcept {
  uint64_t v;
  std::memcpy(&v, p, 8);
  v ^= 0x3030303030303030;  // a digit becomes its value, anything else 10 or more
  const uint64_t others = (((v & 0x7f7f7f7f7f7f7f7f) + 0x7676767676767676) | v) & 0x8080808080808080;
  const unsigned count = static_cast<unsigned>(std::countr_zero(others)) / 8;
  v = count == 0 ? 0 : v << (64 - 8 * count);  // leading zeros in place of what follows
  v = (v * 10) + (v >> 8);                     // pairs, then fours, then eight
  value =
      (((v & 0x000000ff000000ff) * 0x000f424000000064) + (((v >> 16) & 0x000000ff000000ff) * 0x0000271000000001)) >> 32;
  return count;
}

// Appends the digits at p to value, which wraps if there are too many; returns where they end.
inline const char* read_digits(const char* p, const char* end, uint64_t& value) noexcept {
  while (end - p >= 8) {
    uint64_t run;
    const unsigned count = digit_run(p, run);
    value = value * kPow10U[count] + run;
    p += count;
    if (count != 8) return p;
  }
  for (unsigned c; p != end && (c = digit(*p)) <= 9; ++p) value = value * 10 + c;
  return p;
}

// A JSON number as mantissa * 10^exponent; exact says that the mantissa did not overflow.
struct Decimal {
  uint64_t mantissa = 0;
  int64_t exponent = 0;
  bool negative = false;
  bool exact = true;
};

template <class T>
class ElementReader {
 public:
  explicit ElementReader(JsonCursor& in) : in_(in), end_(in.end()) {}

  // One element at p, whitespace before it already passed.
  const char* read(const char* p, T& out) const {
    if constexpr (std::same_as<T, bool>) {
      return read_bool(p, out);
    } else if constexpr (std::integral<T>) {
      return read_integer(p, out);
    } else if constexpr (std::floating_point<T>) {
      return read_float(p, out);
    } else {
      float value;
      const char* next = ElementReader<float>(in_).read_float(p, value);
      convert(p, value, out);
      return next;
    }
  }

  [[noreturn, gnu::cold, gnu::noinline]] void fail(const char* p, std::string_view problem) const {
    in_.set_position(p);
    in_.fail(problem);
  }

  const char* read_float(const char* p, T& out) const requires std::floating_point<T> {
    Decimal d;
    const char* const start = p;
    if (p != end_ && *p == '-') {
      d.negative = true;
      ++p;
    }
    const char* const digits = p;
    p = read_digits(p, end_, d.mantissa);
    if (p == digits) return read_token(start, out);
    if (*digits == '0' && p - digits > 1) [[unlikely]]
      fail(start, "number with a leading zero");
    int64_t significant = p - digits;
    if (p != end_ && *p == '.') {
      const char* const fraction = ++p;
      p = read_digits(p, end_, d.mantissa);
      if (p == fraction) [[unlikely]]
        fail(start, "malformed number");
      d.exponent = fraction - p;
      significant += p - fraction;
    }
    if (p != end_ && (*p == 'e' || *p == 'E')) p = read_exponent(start, p + 1, d);
    d.exact = significant <= 19;
    if (!convert_fast(d, out)) [[unlikely]]
      convert_slow(start, p, out);
    return p;
  }

 private:
  const char* read_bool(const char* p, bool& out) const {
    if (end_ - p >= 4 && std::memcmp(p, "true", 4) == 0) {
      out = true;
      return p + 4;
    }
    if (end_ - p >= 5 && std::memcmp(p, "false", 5) == 0) {
      out = false;
      return p + 5;
    }
    fail(p, "expected true or false");
  }

  const char* read_integer(const char* p, T& out) const {
    const char* const start = p;
    const bool negative = p != end_ && *p == '-';
    p += negative;
    const char* const digits = p;
    uint64_t value = 0;
    p = read_digits(p, end_, value);
    const ptrdiff_t count = p - digits;
    if (count == 0) [[unlikely]]
      fail(start, "expected an integer");
    if (*digits == '0' && count > 1) [[unlikely]]
      fail(start, "number with a leading zero");
    if (p != end_ && (*p == '.' || *p == 'e' || *p == 'E')) [[unlikely]]
      fail(start, "expected an integer");
    bool fits = true;
    if (count > 19) [[unlikely]]
      fits = count == 20 && std::from_chars(digits, p, value).ec == std::errc();
    constexpr uint64_t kMax = static_cast<uint64_t>(std::numeric_limits<T>::max());
    if (negative) {
      fits = fits && (std::is_signed_v<T> ? value <= kMax + 1 : value == 0);
      value = 0 - value;
    } else {
      fits = fits && value <= kMax;
    }
    if (!fits) [[unlikely]]
      out_of_range(start);
    out = static_cast<T>(value);
    return p;
  }

  // NaN, Infinity, -Infinity.
  const char* read_token(const char* p, T& out) const requires std::floating_point<T> {
    const std::string_view rest(p, static_cast<size_t>(end_ - p));
    if (rest.starts_with("NaN")) {
      out = std::numeric_limits<T>::quiet_NaN();
      return p + 3;
    }
    if (rest.starts_with("Infinity")) {
      out = std::numeric_limits<T>::infinity();
      return p + 8;
    }
    if (rest.starts_with("-Infinity")) {
      out = -std::numeric_limits<T>::infinity();
      return p + 9;
    }
    fail(p, "expected a number");
  }

  const char* read_exponent(const char* start, const char* p, Decimal& d) const {
    bool negative = false;
    if (p != end_ && (*p == '+' || *p == '-')) negative = *p++ == '-';
    const char* const digits = p;
    int64_t exponent = 0;
    for (unsigned c; p != end_ && (c = digit(*p)) <= 9; ++p) {
      if (exponent < 100'000'000) exponent = exponent * 10 + c;
    }
    if (p == digits) [[unlikely]]
      fail(start, "malformed number");
    d.exponent += negative ? -exponent : exponent;
    return p;
  }

  // True if the result is known to be correctly rounded.
  static bool convert_fast(const Decimal& d, float& out) noexcept {
    if (!d.exact || d.exponent < -22 || d.exponent > 22) return false;
    if (d.mantissa == 0) {
      out = d.negative ? -0.0f : 0.0f;
      return true;
    }
    // Off by two units in the last place at most, which matters only next to the middle between two floats.
    const double value = static_cast<double>(d.mantissa) * kScale[static_cast<size_t>(d.exponent + 22)];
    if (value < FLT_MIN || value > FLT_MAX) return false;
    const uint64_t tail = std::bit_cast<uint64_t>(value) & 0x1fffffff;
    if (tail - (0x10000000 - 8) <= 16) return false;
    out = static_cast<float>(d.negative ? -value : value);
    return true;
  }
  static bool convert_fast(const Decimal& d, double& out) noexcept {
    if (!d.exact || d.exponent < -27 || d.exponent > 27) return false;
    const size_t power = static_cast<size_t>(d.exponent < 0 ? -d.exponent : d.exponent);
    if (d.mantissa <= uint64_t{1} << 53 && power <= 22) {  // both exact: one rounding
      const double value = static_cast<double>(d.mantissa);
      const double result = d.exponent < 0 ? value / kPow10[power] : value * kPow10[power];
      out = d.negative ? -result : result;
      return true;
    }
    if constexpr (LDBL_MANT_DIG == 64) {
      // Both exact in 64 bits; rounding twice matters only next to the middle between two doubles.
      const long double value = static_cast<long double>(d.mantissa);
      const long double result = d.exponent < 0 ? value / kPow10L[power] : value * kPow10L[power];
      uint64_t mantissa;
      std::memcpy(&mantissa, &result, sizeof mantissa);
      if ((mantissa & 0x7ff) - 0x3ff <= 2) return false;
      out = static_cast<double>(d.negative ? -result : result);
      return true;
    }
    return false;
  }

  [[gnu::noinline]] void convert_slow(const char* start, const char* end,
                                      T& out) const requires std::floating_point<T> {
    const auto [next, ec] = std::from_chars(start, end, out);
    if (ec == std::errc::result_out_of_range) {
      if (above_one(start, end)) out_of_range(start);
      out = *start == '-' ? T(-0.0) : T(0);
    } else if (ec != std::errc() || next != end) {
      fail(start, "malformed number");
    }
  }

  // Of a number that is no float of the type: whether it is too large rather than too small.
  static bool above_one(const char* p, const char* end) noexcept {
    int64_t magnitude = 0, exponent = 0;
    bool fraction = false, nonzero = false;
    for (; p != end && *p != 'e' && *p != 'E'; ++p) {
      if (*p == '.') fraction = true;
      if (digit(*p) > 9) continue;
      nonzero = nonzero || *p != '0';
      if (!fraction && nonzero) ++magnitude;
      if (fraction && !nonzero) --magnitude;
    }
    if (p != end) {
      p += p[1] == '+' ? 2 : 1;
      if (std::from_chars(p, end, exponent).ec != std::errc()) return *p != '-';
    }
    return exponent > -magnitude;
  }

  void convert(const char* p, float value, Half& out) const {
    out.bits = encode_float16(value);
    if ((out.bits & 0x7fff) == 0x7c00 && !std::isinf(value)) out_of_range(p);
  }
  void convert(const char* p, float value, BFloat& out) const {
    out.bits = encode_bfloat16(value);
    if ((out.bits & 0x7fff) == 0x7f80 && !std::isinf(value)) out_of_range(p);
  }
  template <DType dtype>
  void convert(const char* p, float value, Float8<dtype>& out) const {
    const std::optional<uint8_t> bits = encode_float8(value, dtype);
    if (!bits) out_of_range(p);
    out.bits = *bits;
  }

  [[noreturn, gnu::cold, gnu::noinline]] void out_of_range(const char* p) const {
    fail(p, "number out of range for the tensor's datatype");
  }

  JsonCursor& in_;
  const char* end_;
};

inline const char* skip_space(const char* p, const char* end) noexcept {
  while (p != end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) ++p;
  return p;
}

// Follows the nesting: the first row closed at a level fixes its length.
class ShapeTracker {
 public:
  int depth() const noexcept { return depth_; }
  bool open() noexcept {  // false if elements were seen at this depth
    if (leaf_ >= 0 && depth_ >= leaf_) return false;
    counts_[depth_++] = 0;
    return true;
  }
  bool elements_here() noexcept {  // false if elements or rows were seen at another depth
    if (leaf_ < 0 && deepest_ <= depth_) leaf_ = depth_;
    return leaf_ == depth_;
  }
  void count(int64_t n) noexcept { counts_[depth_ - 1] += n; }
  bool close() noexcept {  // false if the row's length differs from its siblings'
    --depth_;
    if (!known_[depth_]) {
      known_[depth_] = true;
      sizes_[depth_] = counts_[depth_];
    }
    if (depth_ + 1 > deepest_) deepest_ = depth_ + 1;
    return sizes_[depth_] == counts_[depth_];
  }
  void store(NestedShape& shape) const noexcept {
    shape.rank = deepest_;
    for (int i = 0; i < deepest_; ++i) shape.sizes[static_cast<size_t>(i)] = sizes_[i];
  }

 private:
  int64_t counts_[JsonCursor::kMaxDepth];
  int64_t sizes_[JsonCursor::kMaxDepth];
  bool known_[JsonCursor::kMaxDepth] = {};
  int depth_ = 0, leaf_ = -1, deepest_ = 0;
};

template <class T>
T* more_room(ElementSink& sink, JsonCursor& in, const char* p) {
  if (sink.grow == nullptr) {
    in.set_position(p);
    in.fail("more elements than the shape holds");
  }
  sink.grow(sink);
  return reinterpret_cast<T*>(sink.data) + sink.count;
}

template <class T>
void read_all(JsonCursor& in, ElementSink& sink, NestedShape* shape) {
  const ElementReader<T> reader(in);
  const char* const end = in.end();
  const char* p = skip_space(in.position(), end);
  T* out = reinterpret_cast<T*>(sink.data) + sink.count;
  if (p == end || *p != '[') {
    if (p == end) reader.fail(p, "expected an array");
    if (sink.count == sink.capacity) out = more_room<T>(sink, in, p);
    in.set_position(reader.read(p, *out));
    ++sink.count;
    if (shape != nullptr) shape->rank = 0;
    return;
  }

  ShapeTracker tracker;
  const char* const ragged = "rows of different length or depth";
  for (;;) {
    p = skip_space(p, end);
    if (p != end && *p == '[') {
      if (tracker.depth() == JsonCursor::kMaxDepth) reader.fail(p, "nested deeper than 100 levels");
      if (!tracker.open() && shape != nullptr) reader.fail(p, ragged);
      p = skip_space(p + 1, end);
      if (p == end || *p != ']') continue;
    } else {
      if (shape != nullptr && !tracker.elements_here()) reader.fail(p, ragged);
      const size_t first = sink.count;
      const T* limit = reinterpret_cast<T*>(sink.data) + sink.capacity;
      for (;;) {
        if (out == limit) [[unlikely]] {
          sink.count = static_cast<size_t>(out - reinterpret_cast<T*>(sink.data));
          out = more_room<T>(sink, in, p);
          limit = reinterpret_cast<T*>(sink.data) + sink.capacity;
        }
        p = skip_space(reader.read(p, *out), end);
        ++out;
        if (p == end || *p != ',') break;
        p = skip_space(p + 1, end);
        if (p != end && *p == '[') break;
      }
      sink.count = static_cast<size_t>(out - reinterpret_cast<T*>(sink.data));
      tracker.count(static_cast<int64_t>(sink.count - first));
      if (p != end && *p == '[') continue;
    }
    // Rows that end here.
    while (p != end && *p == ']') {
      if (!tracker.close() && shape != nullptr) reader.fail(p, ragged);
      p = skip_space(p + 1, end);
      if (tracker.depth() == 0) {
        in.set_position(p);
        if (shape != nullptr) tracker.store(*shape);
        return;
      }
      tracker.count(1);
    }
    if (p == end || *p != ',') reader.fail(p, "expected ',' or ']'");
    ++p;
  }
}

template <class T>
char* write_element(char* p, T value) noexcept {
  constexpr size_t kRoom = 32;
  if constexpr (std::same_as<T, bool>) {
    const std::string_view text = value ? "true" : "false";
    std::memcpy(p, text.data(), text.size());
    return p + text.size();
  } else if constexpr (std::integral<T>) {
    return std::to_chars(p, p + kRoom, value).ptr;
  } else if constexpr (std::floating_point<T>) {
    if (!std::isfinite(value)) [[unlikely]] {
      const std::string_view text = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
      std::memcpy(p, text.data(), text.size());
      return p + text.size();
    }
    // Whole numbers with as many digits as the type holds for sure are their own shortest form.
    constexpr T kWhole = std::same_as<T, float> ? T(1 << 24) : T(int64_t{1} << 53);
    if (std::fabs(value) < kWhole && std::trunc(value) == value && (value != 0 || !std::signbit(value))) {
      char* const end = std::to_chars(p, p + kRoom, static_cast<int64_t>(value)).ptr;
      end[0] = '.';
      end[1] = '0';
      return end + 2;
    }
    char* const end = std::to_chars(p, p + kRoom, value).ptr;
    for (const char* c = p; c != end; ++c) {
      if (*c == '.' || *c == 'e') return end;
    }
    end[0] = '.';
    end[1] = '0';
    return end + 2;
  } else if constexpr (std::same_as<T, Half>) {
    return write_element(p, decode_float16(value.bits));
  } else if constexpr (std::same_as<T, BFloat>) {
    return write_element(p, decode_bfloat16(value.bits));
  } else {
    return write_element(p, decode_float8(value.bits, [&]<DType dtype>(Float8<dtype>) { return dtype; }(value)));
  }
}

template <class T>
class Writer {
 public:
  Writer(TextBuffer& out, const Tensor& tensor) : out_(out), tensor_(tensor) {}

  void flat() {
    out_.append('[');
    if (tensor_.numel() != 0) {
      if (tensor_.is_contiguous()) {
        row(tensor_.data_as<T>(), tensor_.numel(), 1);
      } else {
        flat_from(0, tensor_.data_as<T>());
      }
    }
    out_.append(']');
  }
  void nested() { nested_from(0, tensor_.data_as<T>()); }

 private:
  void row(const T* data, int64_t count, int64_t stride) {
    constexpr int64_t kBlock = 64;
    for (int64_t i = 0; i < count; i += kBlock) {
      char* p = out_.reserve(kBlock * 34);
      const int64_t stop = i + kBlock < count ? i + kBlock : count;
      for (int64_t j = i; j < stop; ++j) {
        p = write_element(p, data[j * stride]);
        *p++ = ',';
      }
      out_.commit(p);
    }
    out_.truncate(out_.size() - 1);
  }
  void flat_from(int64_t dim, const T* data) {
    if (dim + 1 == tensor_.dim()) return row(data, tensor_.size(dim), tensor_.stride(dim));
    for (int64_t i = 0; i < tensor_.size(dim); ++i) {
      if (i != 0) out_.append(',');
      flat_from(dim + 1, data + i * tensor_.stride(dim));
    }
  }
  void nested_from(int64_t dim, const T* data) {
    if (dim == tensor_.dim()) return row_of_one(data);
    out_.append('[');
    if (dim + 1 == tensor_.dim()) {
      if (tensor_.size(dim) != 0) row(data, tensor_.size(dim), tensor_.stride(dim));
    } else {
      for (int64_t i = 0; i < tensor_.size(dim); ++i) {
        if (i != 0) out_.append(',');
        nested_from(dim + 1, tensor_.numel() == 0 ? data : data + i * tensor_.stride(dim));
      }
    }
    out_.append(']');
  }
  void row_of_one(const T* data) { out_.commit(write_element(out_.reserve(34), *data)); }

  TextBuffer& out_;
  const Tensor& tensor_;
};

// Complex elements as pairs of components.
Tensor components(const Tensor& tensor) {
  int64_t sizes[Tensor::kMaxRank + 1], strides[Tensor::kMaxRank + 1];
  const size_t rank = static_cast<size_t>(tensor.dim());
  for (size_t d = 0; d < rank; ++d) {
    sizes[d] = tensor.sizes()[d];
    strides[d] = 2 * tensor.strides()[d];
  }
  sizes[rank] = 2;
  strides[rank] = 1;
  return tensor.view_as(component_dtype(tensor.dtype()), {sizes, rank + 1}, {strides, rank + 1},
                        2 * tensor.storage_offset());
}

}  // namespace

bool has_json_form(DType dtype) noexcept { return dtype != DType::kFloat4E2M1FNx2; }

DType component_dtype(DType dtype) noexcept {
  switch (dtype) {
    case DType::kComplex32:
      return DType::kFloat16;
    case DType::kComplex64:
      return DType::kFloat32;
    case DType::kComplex128:
      return DType::kFloat64;
    default:
      return dtype;
  }
}

void read_elements(JsonCursor& in, DType dtype, ElementSink& sink, NestedShape* shape) {
  with_element_type(dtype, [&]<class T>() { read_all<T>(in, sink, shape); });
}

void write_flat(TextBuffer& out, const Tensor& tensor) {
  if (is_complex(tensor.dtype())) return write_flat(out, components(tensor));
  with_element_type(tensor.dtype(), [&]<class T>() { Writer<T>(out, tensor).flat(); });
}

void write_nested(TextBuffer& out, const Tensor& tensor) {
  if (is_complex(tensor.dtype())) return write_nested(out, components(tensor));
  with_element_type(tensor.dtype(), [&]<class T>() { Writer<T>(out, tensor).nested(); });
}

}  // namespace sconce
