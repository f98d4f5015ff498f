#include "src/tensor_files/npy_header.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::tensor_files {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;

struct NumpyName {
  DType dtype;
  std::string_view code;  // without byte order
};
constexpr NumpyName kNumpyNames[] = {{DType::kBool, "b1"},      {DType::kInt8, "i1"},       {DType::kUInt8, "u1"},
                                     {DType::kInt16, "i2"},     {DType::kUInt16, "u2"},     {DType::kInt32, "i4"},
                                     {DType::kUInt32, "u4"},    {DType::kInt64, "i8"},      {DType::kUInt64, "u8"},
                                     {DType::kFloat16, "f2"},   {DType::kFloat32, "f4"},    {DType::kFloat64, "f8"},
                                     {DType::kComplex64, "c8"}, {DType::kComplex128, "c16"}};

// Reads the dict literal, in the form that NumPy writes.
class LiteralReader {
 public:
  LiteralReader(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  void expect(char c) {
    skip_space();
    SCONCE_CHECK(at_ < text_.size() && text_[at_] == c, kCorruptPackage, "npy: malformed header: ", where_,
                 ": expected '", c, "' at character ", at_);
    ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  std::string_view string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    SCONCE_CHECK(quote != '[', kUnsupported, "npy: structured types are not supported: ", where_);
    SCONCE_CHECK(quote == '\'' || quote == '"', kCorruptPackage, "npy: malformed header: ", where_,
                 ": expected a string at character ", at_);
    const size_t end = text_.find(quote, at_ + 1);
    SCONCE_CHECK(end != std::string_view::npos, kCorruptPackage, "npy: malformed header: ", where_,
                 ": a string does not end");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    SCONCE_FAIL(kCorruptPackage, "npy: malformed header: ", where_, ": expected True or False at character ", at_);
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t value = 0;
      const char* first = text_.data() + at_;
      const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
      SCONCE_CHECK(error == std::errc() && value >= 0, kCorruptPackage, "npy: malformed header: ", where_,
                   ": a size is not a number between 0 and 2^63 at character ", at_);
      at_ += static_cast<size_t>(end - first);
      accept('L');  // a Python 2 long
      values.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  std::string_view text_, where_;
  size_t at_ = 0;
};

void read_descr(std::string_view descr, std::string_view where, NpyHeader& header) {
  SCONCE_CHECK(descr.size() >= 2, kCorruptPackage, "npy: malformed header: ", where, ": descr '", excerpt(descr), "'");
  const char order = descr[0];
  for (const NumpyName& row : kNumpyNames)
    if (descr.substr(1) == row.code && std::strchr("<>|=", order)) {
      header.dtype = row.dtype;
      header.swap_bytes = order == '>' && dtype_bytes(row.dtype) > 1;
      return;
    }
  // NumPy treats the types of ml_dtypes as opaque bytes of a size.
  const std::string_view bytes = descr.substr(1);
  SCONCE_FAIL(kUnsupported, "npy: no tensor type for NumPy's type: ", where, ": descr '", excerpt(descr), "'",
              bytes == "V2"   ? ", as NumPy writes bfloat16 of ml_dtypes; a safetensors file carries bfloat16"
              : bytes == "V1" ? ", as NumPy writes types of ml_dtypes with 8 bits; a safetensors file carries float8"
                              : "");
}

void set_strides(bool fortran_order, std::string_view where, NpyHeader& header) {
  const size_t rank = header.sizes.size();
  SCONCE_CHECK(rank <= Tensor::kMaxRank, kUnsupported, "npy: too many dimensions: ", where, ": ", rank);
  header.strides.resize(rank);
  int64_t stride = 1;
  bool empty = false, overflow = false;
  for (size_t i = 0; i < rank; ++i) {
    const size_t d = fortran_order ? i : rank - 1 - i;
    header.strides[d] = stride;
    empty |= header.sizes[d] == 0;
    overflow |= __builtin_mul_overflow(stride, std::max<int64_t>(header.sizes[d], 1), &stride);
  }
  int64_t bytes = 0;
  overflow |= __builtin_mul_overflow(stride, static_cast<int64_t>(dtype_bytes(header.dtype)), &bytes);
  SCONCE_CHECK(!overflow, kCorruptPackage, "npy: sizes overflow: ", where, ": ", to_string(IntSpan(header.sizes)));
  header.data_bytes = empty ? 0 : static_cast<size_t>(bytes);
}

}  // namespace

bool is_npy(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view where) {
  SCONCE_CHECK(is_npy(bytes), kCorruptPackage, "npy: not a .npy file (no magic): ", where);
  SCONCE_CHECK(bytes.size() >= 12, kCorruptPackage, "npy: file ends within its header: ", where);
  const auto byte = [&](size_t i) { return std::to_integer<size_t>(bytes[i]); };
  const size_t major = byte(6), minor = byte(7);
  SCONCE_CHECK(major >= 1 && major <= 3 && minor == 0, kUnsupported, "npy: unknown format version: ", where, ": ",
               major, ".", minor);
  const size_t start = major == 1 ? 10 : 12;
  const size_t length = major == 1 ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  SCONCE_CHECK(length <= kMaxNpyHeader, kCorruptPackage, "npy: header is too long: ", where, ": ", length, " bytes");
  SCONCE_CHECK(bytes.size() - start >= length, kCorruptPackage, "npy: file ends within its header: ", where);

  NpyHeader header;
  header.header_bytes = start + length;
  LiteralReader reader({reinterpret_cast<const char*>(bytes.data()) + start, length}, where);
  bool has_descr = false, has_order = false, has_shape = false, fortran_order = false;
  reader.expect('{');
  while (!reader.accept('}')) {
    const std::string_view key = reader.string();
    reader.expect(':');
    bool* seen = key == "descr"           ? &has_descr
                 : key == "fortran_order" ? &has_order
                 : key == "shape"         ? &has_shape
                                          : nullptr;
    SCONCE_CHECK(seen && !*seen, kCorruptPackage, "npy: malformed header: ", where, ": unexpected key '", excerpt(key),
                 "'");
    *seen = true;
    if (seen == &has_descr)
      read_descr(reader.string(), where, header);
    else if (seen == &has_order)
      fortran_order = reader.boolean();
    else
      header.sizes = reader.tuple();
    if (!reader.accept(',')) {
      reader.expect('}');
      break;
    }
  }
  SCONCE_CHECK(reader.at_end() && has_descr && has_order && has_shape, kCorruptPackage,
               "npy: malformed header: ", where, ": expected exactly descr, fortran_order and shape");
  set_strides(fortran_order, where, header);
  return header;
}

void check_data_bytes(const NpyHeader& header, uint64_t found, std::string_view where, const char* format) {
  SCONCE_CHECK(found == header.data_bytes, kCorruptPackage, format, ": wrong size of data: ", where, ": expected ",
               header.data_bytes, " bytes for ", dtype_name(header.dtype), " ", to_string(IntSpan(header.sizes)),
               ", found ", found);
}

std::string make_npy_header(DType dtype, IntSpan sizes, std::string_view where) {
  const auto* row = std::find_if(std::begin(kNumpyNames), std::end(kNumpyNames),
                                 [&](const NumpyName& name) { return name.dtype == dtype; });
  SCONCE_CHECK(row != std::end(kNumpyNames), kUnsupported, "npy: NumPy has no type for this tensor, write .safetensors",
               " instead: ", where, ": ", dtype_name(dtype));
  std::string text = "{'descr': '";
  text += dtype_bytes(dtype) == 1 ? '|' : '<';
  text += row->code;
  text += "', 'fortran_order': False, 'shape': (";
  for (const int64_t size : sizes) text += std::to_string(size) + ", ";
  if (sizes.size() > 1) text.resize(text.size() - 2);
  if (sizes.size() == 1) text.pop_back();
  text += "), }";
  const size_t total = (10 + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.append(total - 10 - text.size() - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

void swap_bytes(std::span<std::byte> data, DType dtype) noexcept {
  const size_t unit = is_complex(dtype) ? dtype_bytes(dtype) / 2 : dtype_bytes(dtype);
  for (size_t i = 0; i + unit <= data.size(); i += unit) std::reverse(&data[i], &data[i] + unit);
}

void check_bools(std::span<const std::byte> data, std::string_view where) {
  const auto bad = std::find_if(data.begin(), data.end(), [](std::byte b) { return b > std::byte{1}; });
  SCONCE_CHECK(bad == data.end(), kCorruptPackage, "a bool is neither 0 nor 1: ", where, ": element ",
               bad - data.begin(), " is ", std::to_integer<int>(*bad));
}

}  // namespace sconce::tensor_files
