// Our number routines, checksum and decompression against libraries that do the same, in one run. Prints nanoseconds
// per element or MB/s, and the library's time as a multiple of ours: above 1, ours is faster.
#include <double-conversion/double-conversion.h>
#include <dragonbox/dragonbox_to_chars.h>
#include <fast_float/fast_float.h>
#include <isa-l.h>
#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "package_format/files/crc32.h"
#include "server/support/json/number_reader.h"
#include "server/support/json/number_writer.h"

using namespace sconce::server;

namespace {

double best_seconds(const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < 60; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

void row(const char* what, const char* who, double seconds, double ours, double amount, const char* unit) {
  std::printf("%-22s %-28s %9.2f %s  %5.2f\n", what, who, amount / seconds, unit, seconds / ours);
}

constexpr size_t kCount = 20000;

template <class T>
void write_numbers(const char* what, const std::vector<T>& values) {
  std::vector<char> out(kCount * (kElementRoom + 1));
  const double ours = best_seconds([&] { write_elements(out.data(), values.data(), kCount, 1); });
  const auto show = [&](const char* who, const auto& write) {
    const double seconds = best_seconds([&] {
      char* p = out.data();
      for (const T value : values) {
        p = write(p, value);
        *p++ = ',';
      }
    });
    row(what, who, seconds, ours, kCount * 1e-6, "M/s ");
  };
  row(what, "ours", ours, ours, kCount * 1e-6, "M/s ");
  show("std::to_chars", [](char* p, T value) { return std::to_chars(p, p + kElementRoom, value).ptr; });
  if constexpr (std::is_floating_point_v<T>) {
    show("dragonbox (scientific only)", [](char* p, T value) { return jkj::dragonbox::to_chars_n(value, p); });
    show("double-conversion", [](char* p, T value) {
      double_conversion::StringBuilder text(p, kElementRoom);
      const auto& converter = double_conversion::DoubleToStringConverter::EcmaScriptConverter();
      std::is_same_v<T, float> ? converter.ToShortestSingle(static_cast<float>(value), &text)
                               : converter.ToShortest(value, &text);
      const int bytes = text.position();
      text.Finalize();
      return p + bytes;
    });
  }
}

template <class T>
void read_numbers(const char* what, const std::vector<T>& values) {
  std::string text(kCount * (kElementRoom + 1), '\0');
  text.resize(static_cast<size_t>(write_elements(text.data(), values.data(), kCount, 1) - text.data()));
  std::vector<T> out(kCount);
  JsonCursor in(text);
  const ElementReader<T> reader(in);
  const double ours = best_seconds([&] {
    const char* p = text.data();
    for (T& value : out) p = reader.read(p, value) + 1;
  });
  row(what, "ours", ours, ours, kCount * 1e-6, "M/s ");
  if constexpr (std::is_floating_point_v<T>) {
    row(what, "fast_float", best_seconds([&] {
          const char* p = text.data();
          for (T& value : out) p = fast_float::from_chars(p, text.data() + text.size(), value).ptr + 1;
        }),
        ours, kCount * 1e-6, "M/s ");
  }
  row(what, "std::from_chars", best_seconds([&] {
        const char* p = text.data();
        for (T& value : out) p = std::from_chars(p, text.data() + text.size(), value).ptr + 1;
      }),
      ours, kCount * 1e-6, "M/s ");
}

void checksums() {
  for (const size_t bytes : {size_t{256}, size_t{4} << 10, size_t{16} << 20}) {
    std::vector<std::byte> data(bytes);
    std::mt19937 random(1);
    for (std::byte& value : data) value = static_cast<std::byte>(random());
    const size_t times = std::max<size_t>(1, (size_t{1} << 20) / bytes);
    const auto* const at = reinterpret_cast<const uint8_t*>(data.data());
    uint32_t sums[4] = {};
    const auto timed = [&](uint32_t& sum, const auto& sum_of) {
      return best_seconds([&] {
        for (size_t i = 0; i < times; ++i) sum = sum_of();
      });
    };
    const double ours = timed(sums[0], [&] { return sconce::crc32(data); });
    const double amount = static_cast<double>(bytes * times) * 1e-6;
    char what[32];
    std::snprintf(what, sizeof what, "CRC-32 of %zu bytes", bytes);
    row(what, "ours", ours, ours, amount, "MB/s");
    row(what, "libdeflate", timed(sums[1], [&] { return libdeflate_crc32(0, at, bytes); }), ours, amount, "MB/s");
    row(what, "ISA-L", timed(sums[2], [&] { return crc32_gzip_refl(0, at, bytes); }), ours, amount, "MB/s");
    row(what, "zlib", timed(sums[3], [&] { return static_cast<uint32_t>(crc32_z(0, at, bytes)); }), ours, amount,
        "MB/s");
    if (!std::all_of(sums, sums + 4, [&](uint32_t sum) { return sum == sums[0]; })) std::puts("checksums differ");
  }
}

// Ours is zlib's inflate(), in pieces.
void inflation(const char* what, const std::vector<uint8_t>& plain) {
  std::vector<uint8_t> packed(compressBound(plain.size())), out(plain.size());
  uLongf bytes = packed.size();
  compress2(packed.data(), &bytes, plain.data(), plain.size(), 6);
  const double amount = static_cast<double>(plain.size()) * 1e-6;
  const double ours = best_seconds([&] {
    uLongf room = out.size();
    uncompress(out.data(), &room, packed.data(), bytes);
  });
  row(what, "zlib (ours)", ours, ours, amount, "MB/s");
  libdeflate_decompressor* const decompressor = libdeflate_alloc_decompressor();
  row(what, "libdeflate", best_seconds([&] {
        libdeflate_zlib_decompress(decompressor, packed.data(), bytes, out.data(), out.size(), nullptr);
      }),
      ours, amount, "MB/s");
  libdeflate_free_decompressor(decompressor);
  row(what, "ISA-L", best_seconds([&] {
        inflate_state state;
        isal_inflate_init(&state);
        state.crc_flag = ISAL_ZLIB;
        state.next_in = packed.data();
        state.avail_in = static_cast<uint32_t>(bytes);
        state.next_out = out.data();
        state.avail_out = static_cast<uint32_t>(out.size());
        isal_inflate(&state);
      }),
      ours, amount, "MB/s");
  if (out != plain) std::puts("inflated content differs");
}

}  // namespace

int main() {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<float> floats(kCount), small(kCount);
  std::vector<double> doubles(kCount);
  std::vector<int64_t> tokens(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    floats[i] = static_cast<float>(doubles[i] = normal(random));
    small[i] = static_cast<float>(random() % 1000) / 100;
    tokens[i] = static_cast<int64_t>(random() % 50000);
  }
  std::printf("%-22s %-28s %14s  %s\n", "", "", "speed", "time / ours");
  write_numbers("write FP32 normal", floats);
  write_numbers("write FP32 0.00-9.99", small);
  write_numbers("write FP64 normal", doubles);
  write_numbers("write INT64 tokens", tokens);
  read_numbers("read FP32 normal", floats);
  read_numbers("read FP32 0.00-9.99", small);
  read_numbers("read FP64 normal", doubles);
  read_numbers("read INT64 tokens", tokens);
  checksums();
  std::string text(kCount * (kElementRoom + 1), '\0');
  text.resize(static_cast<size_t>(write_elements(text.data(), floats.data(), kCount, 1) - text.data()));
  inflation("inflate JSON", {text.begin(), text.end()});
  const auto* const weights = reinterpret_cast<const uint8_t*>(floats.data());
  inflation("inflate FP32", {weights, weights + sizeof(float) * kCount});
}
