// Environment variables and small configuration files of other programs.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace sconce::server::registry {

class Environment {
 public:
  // variable: null if it is not set.
  explicit Environment(std::function<const char*(const char*)> variable) : variable_(std::move(variable)) {}
  static Environment of_process();

  std::string operator()(const char* name) const;  // empty: not set
  std::string first(std::initializer_list<const char*> names) const;
  // A path below the home directory.
  std::string home(std::string_view below) const { return (*this)("HOME") + "/" + std::string(below); }

 private:
  std::function<const char*(const char*)> variable_;
};

// The first MiB of a file; empty if it cannot be read.
std::string text_of_file(const std::string& path);
// Likewise, for a required file: kNotFound names the file and the reason `why` it is read.
std::string needed_text_of_file(const std::string& path, std::string_view why);
// A value in a section of an INI file such as those in ~/.aws; empty if absent.
std::string ini_value(std::string_view text, std::string_view section, std::string_view name);
bool has_section(std::string_view text, std::string_view section);
// kInvalidArgument if the value cannot be in a header field, because it has a space or a control character. The error
// does not show the value.
void check_field_value(std::string_view value, std::string_view what);
// Likewise for the URL of a server; trailing slashes are removed.
std::string checked_endpoint(std::string endpoint, std::string_view what);

}  // namespace sconce::server::registry
