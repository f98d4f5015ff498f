#include "server/http/client/answer_head.h"

#include <algorithm>

#include "server/support/trim.h"
#include "src/support/parse_number.h"

namespace sconce::server::http {
namespace {

// Validators are sent back to the server in later requests, where a bare line end would start another field.
bool breaks_a_line(char c) noexcept { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 'a' - 'A');
  return out;
}

}  // namespace

std::string AnswerHead::field(const std::string& name) const {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : found->second;
}

const char* AnswerHead::take(std::string_view line) {
  bytes += line.size();
  if (bytes > kMaxBytes) return "the head of the answer is too long";
  line = trim(line, " \t\r\n");
  if (std::any_of(line.begin(), line.end(), breaks_a_line)) return "the head of the answer has a control character";
  if (line.starts_with("HTTP/")) {
    fields.clear();
    const size_t space = line.find(' ');
    status = space == std::string_view::npos ? 0 : parse_number<int>(line.substr(space + 1, 3)).value_or(0);
    return nullptr;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return nullptr;
  fields[lower(line.substr(0, colon))] = trim(line.substr(colon + 1));
  return fields.size() <= kMaxFields ? nullptr : "the head of the answer has too many fields";
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) return std::nullopt;
  const auto begin = parse_number<uint64_t>(text.substr(0, dash)),
             last = parse_number<uint64_t>(text.substr(dash + 1, slash - dash - 1)),
             total = parse_number<uint64_t>(text.substr(slash + 1));
  if (!begin || !last || !total || *begin > *last || *last >= *total) return std::nullopt;
  return ContentRange{*begin, *last + 1, *total};
}

std::string without_quotes(std::string_view validator) {
  if (validator.starts_with("W/")) validator.remove_prefix(2);
  if (validator.size() >= 2 && validator.front() == '"' && validator.back() == '"')
    validator = validator.substr(1, validator.size() - 2);
  return std::string(validator);
}

std::string next_link(const std::string& field) {
  const size_t end = field.find('>');
  const bool next =
      field.starts_with('<') && end != std::string::npos && field.find("rel=\"next\"", end) != std::string::npos;
  return next ? field.substr(1, end - 1) : "";
}

}  // namespace sconce::server::http
