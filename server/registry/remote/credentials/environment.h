// What the environment and small files of other programs say.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace sconce::server {

class Environment {
 public:
  // variable: null if it is not set.
  explicit Environment(std::function<const char*(const char*)> variable) : variable_(std::move(variable)) {}
  static Environment of_process();

  std::string operator()(const char* name) const;  // empty: it is not set
  std::string first(std::initializer_list<const char*> names) const;
  // A path below the home directory.
  std::string home(std::string_view below) const { return (*this)("HOME") + "/" + std::string(below); }

 private:
  std::function<const char*(const char*)> variable_;
};

// The first MiB of a file; empty if it cannot be read.
std::string text_of_file(const std::string& path);
// The same, for a file that must be there: kNotFound names it and `why` it is read.
std::string needed_text_of_file(const std::string& path, std::string_view why);
// A value of an INI file's section, as ~/.aws has them; empty if it is not there.
std::string ini_value(std::string_view text, std::string_view section, std::string_view name);
bool has_section(std::string_view text, std::string_view section);
// kInvalidArgument if the value could not be in a header field: it has a space or a control character. It is not shown.
void check_field_value(std::string_view value, std::string_view what);
// The same for a URL of a server, without its last slashes.
std::string checked_endpoint(std::string endpoint, std::string_view what);

}  // namespace sconce::server
