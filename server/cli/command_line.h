// The options of a subcommand. Hides CLI11, whose headers add seconds of compile time to each source that includes
// them.
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

namespace sconce::server::cli {

// An added option or positional argument. Each function adds a property to it.
class Argument {
 public:
  explicit Argument(CLI::Option* option) noexcept : option_(option) {}
  Argument& required();
  Argument& placeholder(const char* text);  // for the value, in the help
  Argument& one_each();                     // one value each time that it is given
  Argument& listed();                       // comma-separated values
  Argument& last_counts();
  Argument& positive();
  Argument& not_negative();
  Argument& one_of(std::initializer_list<const char*> words);

 private:
  CLI::Option* option_;
};

// Adds options to one subcommand, whose App must outlive the object. `value` holds the default until the command line
// is parsed.
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
  // Checks the parsed options of this subcommand before it runs. An exception is a usage error: main exits with status
  // 2.
  void checked(const std::function<void()>& check);
  // The user must give one of the added subcommands.
  CommandLine subcommand(const std::string& name, const std::string& description);
  // The former name of a subcommand: a usage error that names the present command, whatever follows it.
  void former_subcommand(const std::string& name, const std::string& now);
  // Likewise for an option that belongs to another command now.
  void former_option(const std::string& name, const std::string& command);
  bool parsed() const;

 private:
  CLI::App* app_;
};

}  // namespace sconce::server::cli
