#include "server/http/compression.h"

#include <zlib.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <charconv>
#include <string>

#include "sconce/check.h"
#include "server/support/trim.h"

namespace sconce::server::http {
namespace {

// windowBits of zlib: 15 for its own format, plus 16 for gzip's.
int window_bits(Coding coding) noexcept { return coding == Coding::kGzip ? 15 + 16 : 15; }

struct Inflater {
  z_stream stream{};
  explicit Inflater(Coding coding) {
    SCONCE_CHECK(inflateInit2(&stream, window_bits(coding)) == Z_OK, kOutOfMemory, "no memory to decompress");
  }
  Inflater(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

struct Deflater {
  z_stream stream{};
  explicit Deflater(Coding coding) {
    SCONCE_CHECK(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window_bits(coding), 8, Z_DEFAULT_STRATEGY) == Z_OK,
                 kOutOfMemory, "no memory to compress");
  }
  Deflater(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream); }
};

// zlib counts in 32 bits.
constexpr size_t kMaxAtOnce = size_t{1} << 30;
constexpr size_t kPiece = 64 * 1024;

// A quality such as "0.5" in thousandths; 0 if malformed.
int quality(std::string_view text) noexcept {
  if (text.empty() || (text[0] != '0' && text[0] != '1')) return 0;
  int thousandths = text[0] == '1' ? 1000 : 0, unit = 100;
  if (text.size() > 1 && text[1] != '.') return 0;
  for (const char c : text.substr(std::min<size_t>(text.size(), 2))) {
    if (c < '0' || c > '9' || unit == 0) return 0;
    thousandths += (c - '0') * unit;
    unit /= 10;
  }
  return std::min(thousandths, 1000);
}

bool same(std::string_view a, std::string_view b) noexcept {
  return boost::beast::iequals({a.data(), a.size()}, {b.data(), b.size()});
}

}  // namespace

std::optional<Coding> coding_from_name(std::string_view name) noexcept {
  if (same(name, "identity")) return Coding::kIdentity;
  if (same(name, "gzip") || same(name, "x-gzip")) return Coding::kGzip;
  if (same(name, "deflate")) return Coding::kDeflate;
  return std::nullopt;
}

Coding accepted_coding(std::string_view field) noexcept {
  Coding best = Coding::kIdentity;
  int best_quality = 0;
  while (!field.empty()) {
    const size_t end = std::min(field.find(','), field.size());
    std::string_view item = field.substr(0, end);
    field.remove_prefix(std::min(field.size(), end + 1));
    int q = 1000;
    const size_t semicolon = std::min(item.find(';'), item.size());
    const std::string_view parameter = trim(item.substr(std::min(item.size(), semicolon + 1)));
    if (parameter.size() > 1 && (parameter[0] == 'q' || parameter[0] == 'Q') && parameter[1] == '=') {
      q = quality(parameter.substr(2));
    }
    const std::optional<Coding> coding = coding_from_name(trim(item.substr(0, semicolon)));
    if (coding && q > best_quality) {
      best = *coding;
      best_quality = q;
    }
  }
  return best;
}

void decompress(Coding coding, const BodyBuffer& body, size_t aligned_at, uint64_t limit, BodyBuffer& plain) {
  Inflater inflater(coding);
  z_stream& z = inflater.stream;
  plain.prepare(0, aligned_at);
  const std::byte* in = body.begin();
  size_t left = body.size();
  char piece[kPiece];
  int status = Z_OK;
  do {
    if (z.avail_in == 0) {
      SCONCE_CHECK(left > 0, kInvalidArgument, "the compressed request body is cut short");
      const size_t now = std::min(left, kMaxAtOnce);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in));
      z.avail_in = static_cast<uInt>(now);
      in += now;
      left -= now;
    }
    z.next_out = reinterpret_cast<Bytef*>(piece);
    z.avail_out = kPiece;
    status = inflate(&z, Z_NO_FLUSH);
    SCONCE_CHECK(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR, kInvalidArgument,
                 "the compressed request body is damaged");
    const size_t count = kPiece - z.avail_out;
    SCONCE_CHECK(count <= limit - std::min<uint64_t>(plain.size(), limit), kTooLarge,
                 "the decompressed request body is larger than ", limit,
                 " bytes, the most that may be (setting max_inflated_bytes, or what the model's inputs can need)");
    plain.append(piece, count);
  } while (status != Z_STREAM_END);
  SCONCE_CHECK(z.avail_in == 0 && left == 0, kInvalidArgument,
               "the compressed request body is followed by other bytes");
}

void compress(Coding coding, Response& response) {
  if (coding == Coding::kIdentity) return;
  const size_t plain_bytes = response.body_bytes();
  Deflater deflater(coding);
  z_stream& z = deflater.stream;
  std::string out;
  char piece[kPiece];
  const auto feed = [&](const void* data, size_t bytes, bool last) {
    const char* p = static_cast<const char*>(data);
    do {
      const size_t now = std::min(bytes, kMaxAtOnce);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(p));
      z.avail_in = static_cast<uInt>(now);
      p += now;
      bytes -= now;
      const int flush = last && bytes == 0 ? Z_FINISH : Z_NO_FLUSH;
      do {
        z.next_out = reinterpret_cast<Bytef*>(piece);
        z.avail_out = kPiece;
        deflate(&z, flush);
        out.append(piece, kPiece - z.avail_out);
      } while (z.avail_out == 0);
    } while (bytes > 0);
  };
  feed(response.text().data() + Response::kHeadRoom, response.text_bytes(), response.segments.empty());
  for (size_t i = 0; i < response.segments.size(); ++i) {
    feed(response.segments[i].data, response.segments[i].bytes, i + 1 == response.segments.size());
  }
  if (out.size() >= plain_bytes) return;
  response.text().truncate(Response::kHeadRoom);
  response.text().append(out);
  response.segments.clear();
  response.fields = coding == Coding::kGzip ? "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
                                            : "Content-Encoding: deflate\r\nVary: Accept-Encoding\r\n";
}

}  // namespace sconce::server::http
