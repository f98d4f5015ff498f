// The options of a subcommand. Hides CLI11, whose headers take each source that includes them seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sconce::server::commands {

// An option or a positional argument that was added. Each function adds a property to it.
class Argument {
 public:
  explicit Argument(CLI::Option* option) noexcept : option_(option) {}
  Argument& required();
  Argument& placeholder(const char* text);  // in the help, for the value
  Argument& one_each();                     // a value for each time that it is given
  Argument& listed();                       // several values with commas between
  Argument& last_counts();
  Argument& positive();
  Argument& not_negative();
  Argument& one_of(std::initializer_list<const char*> words);

 private:
  CLI::Option* option_;
};

// Adds options to one subcommand, whose App must outlive it. `value` holds the default until the command line is
// parsed.
class CommandLine {
 public:
  explicit CommandLine(CLI::App& app) noexcept : app_(&app) {}
  Argument option(const std::string& name, std::string& value, const std::string& help);
  Argument option(const std::string& name, int& value, const std::string& help);
  Argument option(const std::string& name, uint64_t& value, const std::string& help);
  Argument option(const std::string& name, double& value, const std::string& help);
  Argument option(const std::string& name, std::vector<std::string>& values, const std::string& help);
  Argument option(const std::string& name, std::vector<int>& values, const std::string& help);
  Argument option_function(const std::string& name, const std::function<void(const std::string&)>& take,
                           const std::string& help);
  void flag(const std::string& name, bool& value, const std::string& help);
  void footer(const std::string& text);
  // Looks at the parsed options of this subcommand, before it runs. What it throws is wrong usage: main ends with 2.
  void checked(const std::function<void()>& check);
  // The user must give one of the subcommands that were added.
  CommandLine subcommand(const std::string& name, const std::string& description);
  bool parsed() const;

 private:
  CLI::App* app_;
};

}  // namespace sconce::server::commands
