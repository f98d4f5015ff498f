#include "server/registry/remote/credentials/environment.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "sconce/check.h"
#include "server/support/trim.h"

namespace sconce::server::registry {
namespace {

constexpr size_t kMaxVariable = 1 << 20;
constexpr std::string_view kBlanks = " \t\r\n";

// Calls each(section, name, value) until it returns true; for a section's own line, `name` is empty.
template <class Each>
void walk_ini(std::string_view text, Each&& each) {
  std::string_view section;
  bool inside = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end), kBlanks);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    const size_t equals = line.find('=');
    if (line.front() == '[' && line.back() == ']') {
      inside = true;
      section = trim(line.substr(1, line.size() - 2));
      if (each(section, std::string_view(), std::string_view())) return;
    } else if (inside && equals != std::string_view::npos) {
      const std::string_view name = trim(line.substr(0, equals));
      if (!name.empty() && each(section, name, trim(line.substr(equals + 1)))) return;
    }
  }
}

}  // namespace

Environment Environment::of_process() {
  return Environment([](const char* name) { return std::getenv(name); });
}

std::string Environment::operator()(const char* name) const {
  const char* const text = variable_(name);
  return text ? text : "";
}

std::string Environment::first(std::initializer_list<const char*> names) const {
  for (const char* const name : names)
    if (std::string text = (*this)(name); !text.empty()) return text;
  return {};
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxVariable, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

std::string needed_text_of_file(const std::string& path, std::string_view why) {
  SCONCE_CHECK(std::ifstream(path).is_open(), kNotFound, "cannot read ", path, ", which ", why, " names");
  return text_of_file(path);
}

std::string ini_value(std::string_view text, std::string_view section, std::string_view name) {
  std::string found;
  walk_ini(text, [&](std::string_view of, std::string_view named, std::string_view value) {
    const bool is_it = of == section && named == name;
    if (is_it) found = value;
    return is_it;
  });
  return found;
}

bool has_section(std::string_view text, std::string_view section) {
  bool found = false;
  walk_ini(text, [&](std::string_view of, std::string_view, std::string_view) { return found = of == section; });
  return found;
}

void check_field_value(std::string_view value, std::string_view what) {
  SCONCE_CHECK(std::all_of(value.begin(), value.end(), [](char c) { return c > 0x20 && c < 0x7f; }), kInvalidArgument,
               what, ": it has a space or a character that no header field may have");
}

std::string checked_endpoint(std::string endpoint, std::string_view what) {
  while (endpoint.ends_with('/')) endpoint.pop_back();
  check_field_value(endpoint, what);
  SCONCE_CHECK(endpoint.empty() || endpoint.starts_with("https://") || endpoint.starts_with("http://"),
               kInvalidArgument, what, ": it must begin with https://");
  SCONCE_CHECK(endpoint.find_first_of("?#@") == std::string::npos, kInvalidArgument, what, ": it is not a plain URL");
  return endpoint;
}

}  // namespace sconce::server::registry
