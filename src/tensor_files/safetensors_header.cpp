#include "src/tensor_files/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::tensor_files {
namespace {

using Json = nlohmann::json;
constexpr std::string_view kMetadata = "__metadata__";

// Reads the header during parsing: builds no tree and detects repeated names. The first error stops the parser and is
// kept in reason().
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(SafetensorsHeader& header) : header_(header) {}
  const std::string& reason() const noexcept { return reason_; }

  bool start_object(size_t) override {
    if (other_) return ++nested_;
    if (level_ == Level::kOutside) return enter(Level::kTop);
    if (level_ != Level::kTop) return wrong("an object");
    if (name_ == kMetadata) return enter(Level::kMetadata);
    header_.entries.emplace_back().name = name_;
    has_dtype_ = has_shape_ = has_offsets_ = false;
    return enter(Level::kEntry);
  }
  bool end_object() override {
    if (other_) return end_nested();
    if (level_ == Level::kEntry && !(has_dtype_ && has_shape_ && has_offsets_))
      return fail("a tensor lacks dtype, shape or data_offsets: " + excerpt(name_));
    return enter(level_ == Level::kTop ? Level::kOutside : Level::kTop);
  }
  bool key(std::string& text) override {
    if (other_) return true;
    if (level_ == Level::kTop) {
      name_ = text;
      return names_.insert(text).second || fail("a name occurs twice: " + text);
    }
    field_ = text;
    if (level_ == Level::kMetadata) return true;
    bool* seen = text == "dtype"          ? &has_dtype_
                 : text == "shape"        ? &has_shape_
                 : text == "data_offsets" ? &has_offsets_
                                          : nullptr;
    // The library also ignores unknown fields.
    if (!seen) return other_ = true;
    if (*seen) return fail("unexpected field \"" + excerpt(text) + "\" of tensor: " + excerpt(name_));
    return *seen = true;
  }
  bool string(std::string& text) override {
    if (other_) return skip_value();
    if (level_ == Level::kMetadata) return header_.metadata[field_] = text, true;
    if (level_ != Level::kEntry || field_ != "dtype") return wrong("a string");
    const std::optional<DType> dtype = dtype_from_safetensors(text);
    if (!dtype) {
      unsupported_ = true;
      return fail("no tensor type for dtype " + excerpt(text) + " of tensor: " + excerpt(name_));
    }
    entry().dtype = *dtype;
    return true;
  }
  bool start_array(size_t) override {
    if (other_) return ++nested_;
    if (level_ != Level::kEntry || field_ == "dtype") return wrong("an array");
    numbers_.clear();
    return enter(Level::kNumbers);
  }
  bool end_array() override {
    if (other_) return end_nested();
    level_ = Level::kEntry;
    if (field_ == "shape") {
      entry().shape.assign(numbers_.begin(), numbers_.end());
      return true;
    }
    if (numbers_.size() != 2) return fail("data_offsets are not two numbers, of tensor: " + excerpt(name_));
    entry().begin = numbers_[0];
    entry().end = numbers_[1];
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (other_) return skip_value();
    if (level_ != Level::kNumbers) return wrong("a number");
    if (value > uint64_t{std::numeric_limits<int64_t>::max()} || numbers_.size() == Tensor::kMaxRank)
      return fail("too large a number or too many, in " + field_ + " of tensor: " + excerpt(name_));
    numbers_.push_back(value);
    return true;
  }
  bool number_integer(number_integer_t) override { return other_ ? skip_value() : wrong("a negative number"); }
  bool number_float(number_float_t, const std::string&) override { return other_ ? skip_value() : wrong("a fraction"); }
  bool null() override {
    if (other_) return skip_value();
    return (level_ == Level::kTop && name_ == kMetadata) || wrong("null");
  }
  bool boolean(bool) override { return other_ ? skip_value() : wrong("a boolean"); }
  bool binary(binary_t&) override { return wrong("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return fail("invalid JSON at byte " + std::to_string(position));
  }
  bool unsupported() const noexcept { return unsupported_; }

 private:
  enum class Level { kOutside, kTop, kMetadata, kEntry, kNumbers };
  SafetensorsEntry& entry() { return header_.entries.back(); }
  bool enter(Level level) {
    level_ = level;
    return true;
  }
  // The value of an unknown field, or a part of it.
  bool skip_value() {
    if (nested_ == 0) other_ = false;
    return true;
  }
  bool end_nested() {
    --nested_;
    return skip_value();
  }
  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }
  bool wrong(const char* what) {
    return fail(std::string("unexpected ") + what + (name_.empty() ? std::string() : " at: " + excerpt(name_)));
  }

  SafetensorsHeader& header_;
  Level level_ = Level::kOutside;
  std::string name_, field_, reason_;
  std::unordered_set<std::string> names_;
  std::vector<uint64_t> numbers_;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false, unsupported_ = false;
  bool other_ = false;  // inside the value of an unknown field
  size_t nested_ = 0;   // open arrays and objects in it
};

// Bytes of the elements by `shape` and the file's dtype. Halves the last dimension of float4.
uint64_t count_bytes(SafetensorsEntry& entry, std::string_view where) {
  if (entry.dtype == DType::kFloat4E2M1FNx2) {
    SCONCE_CHECK(!entry.shape.empty() && entry.shape.back() % 2 == 0, kCorruptPackage,
                 "safetensors: last size of a float4 tensor is not even: ", where, ": ", excerpt(entry.name));
    entry.shape.back() /= 2;
  }
  int64_t bytes = static_cast<int64_t>(dtype_bytes(entry.dtype));
  bool overflow = false, empty = false;
  for (const int64_t size : entry.shape) {
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes);
  }
  SCONCE_CHECK(!overflow, kCorruptPackage, "safetensors: sizes overflow: ", where, ": ", excerpt(entry.name), ": ",
               to_string(IntSpan(entry.shape)));
  return empty ? 0 : static_cast<uint64_t>(bytes);
}

// "__metadata__" may hold any text, so only entries that name one of the header's tensors count.
void note_tied_names(SafetensorsHeader& header) {
  if (header.metadata.empty()) return;
  std::unordered_map<std::string_view, SafetensorsEntry*> by_name;
  for (SafetensorsEntry& entry : header.entries) by_name[entry.name] = &entry;
  for (const auto& [name, kept] : header.metadata)
    if (const auto at = by_name.find(kept); at != by_name.end() && !by_name.contains(name))
      at->second->tied.push_back(name);
}

std::string quoted(const std::string& text, std::string_view where) {
  std::string json = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  SCONCE_CHECK(Json::parse(json).get_ref<const std::string&>() == text, kInvalidArgument,
               "safetensors: text is not UTF-8: ", where, ": ", excerpt(json));
  return json;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, std::optional<uint64_t> known_bytes,
                                           std::string_view where) {
  SCONCE_CHECK(json.starts_with('{'), kCorruptPackage, "safetensors: header does not start with '{': ", where);
  SafetensorsHeader header;
  HeaderReader reader(header);
  if (!Json::sax_parse(json.begin(), json.end(), &reader)) {
    SCONCE_CHECK(!reader.unsupported(), kUnsupported, "safetensors: ", reader.reason(), ": ", where);
    SCONCE_FAIL(kCorruptPackage, "safetensors: malformed header: ", where, ": ", reader.reason());
  }
  const uint64_t data_bytes = known_bytes.value_or(std::numeric_limits<uint64_t>::max());
  std::vector<const SafetensorsEntry*> by_offset;
  for (SafetensorsEntry& entry : header.entries) {
    const uint64_t needed = count_bytes(entry, where);
    SCONCE_CHECK(entry.begin <= entry.end && entry.end <= data_bytes, kCorruptPackage,
                 "safetensors: data lies outside the file: ", where, ": ", excerpt(entry.name), ": bytes ", entry.begin,
                 " to ", entry.end, " of ", data_bytes);
    SCONCE_CHECK(entry.end - entry.begin == needed, kCorruptPackage, "safetensors: wrong size of data: ", where, ": ",
                 excerpt(entry.name), ": expected ", needed, " bytes for ", dtype_name(entry.dtype), " ",
                 to_string(IntSpan(entry.shape)), ", found ", entry.end - entry.begin);
    by_offset.push_back(&entry);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const auto* a, const auto* b) { return a->begin != b->begin ? a->begin < b->begin : a->end < b->end; });
  uint64_t position = 0;
  for (const SafetensorsEntry* entry : by_offset) {
    SCONCE_CHECK(entry->begin == position, kCorruptPackage, "safetensors: data overlaps or leaves a gap: ", where, ": ",
                 excerpt(entry->name), ": starts at byte ", entry->begin, ", expected ", position);
    position = entry->end;
  }
  SCONCE_CHECK(!known_bytes || position == data_bytes, kCorruptPackage,
               "safetensors: file has bytes of no tensor: ", where, ": ", data_bytes - position);
  note_tied_names(header);
  return header;
}

uint64_t safetensors_header_bytes(std::span<const std::byte> start, std::optional<uint64_t> file_bytes,
                                  std::string_view where) {
  uint64_t length = 0;
  SCONCE_CHECK(start.size() >= sizeof length, kCorruptPackage, "safetensors: file ends within its header: ", where);
  std::memcpy(&length, start.data(), sizeof length);
  SCONCE_CHECK(length <= kMaxSafetensorsHeader, kCorruptPackage, "safetensors: header is too long: ", where, ": ",
               length, " bytes");
  SCONCE_CHECK(!file_bytes || length <= *file_bytes - sizeof length, kCorruptPackage,
               "safetensors: file ends within its header: ", where, ": header of ", length, " bytes, file of ",
               file_bytes.value_or(0));
  return length;
}

void sort_by_offset(SafetensorsHeader& header) {
  std::sort(header.entries.begin(), header.entries.end(),
            [](const auto& a, const auto& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
}

std::string make_safetensors_header(const SafetensorsHeader& header, std::string_view where) {
  std::string json = "{";
  if (!header.metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : header.metadata) json += quoted(key, where) + ":" + quoted(value, where) + ",";
    json.back() = '}';
    json += ',';
  }
  for (const SafetensorsEntry& entry : header.entries) {
    SCONCE_CHECK(entry.name != kMetadata, kInvalidArgument, "safetensors: a tensor cannot have this name: ", where,
                 ": ", excerpt(entry.name));
    const std::string_view dtype = dtype_safetensors(entry.dtype);
    SCONCE_CHECK(!dtype.empty(), kUnsupported, "safetensors: the format has no type for this tensor: ", where, ": ",
                 excerpt(entry.name), ": ", dtype_name(entry.dtype));
    std::vector<int64_t> shape = entry.shape;
    if (entry.dtype == DType::kFloat4E2M1FNx2) {
      SCONCE_CHECK(!shape.empty(), kInvalidArgument, "safetensors: a float4 tensor without dimensions: ", where, ": ",
                   excerpt(entry.name));
      shape.back() *= 2;
    }
    json += quoted(entry.name, where) + ":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":[";
    for (size_t d = 0; d < shape.size(); ++d) json.append(d ? "," : "").append(std::to_string(shape[d]));
    json += "],\"data_offsets\":[" + std::to_string(entry.begin) + "," + std::to_string(entry.end) + "]},";
  }
  if (json.back() == ',') json.pop_back();
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  SCONCE_CHECK(json.size() <= kMaxSafetensorsHeader, kInvalidArgument, "safetensors: header is too long: ", where, ": ",
               json.size(), " bytes");
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return length + json;
}

}  // namespace sconce::tensor_files
