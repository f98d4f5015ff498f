#include "server/cli/command_line.h"

#include <CLI/CLI.hpp>

#include "sconce/check.h"

namespace sconce::server::cli {

Argument& Argument::required() {
  option_->required();
  return *this;
}
Argument& Argument::placeholder(const char* text) {
  option_->type_name(text);
  return *this;
}
Argument& Argument::one_each() {
  option_->allow_extra_args(false)->take_all();
  return *this;
}
Argument& Argument::listed() {
  option_->delimiter(',');
  return *this;
}
Argument& Argument::last_counts() {
  option_->take_last();
  return *this;
}
Argument& Argument::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}
Argument& Argument::not_negative() {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}
Argument& Argument::one_of(std::initializer_list<const char*> words) {
  option_->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())));
  return *this;
}

Argument CommandLine::option(const std::string& name, std::string& value, const std::string& help) {
  return Argument(app_->add_option(name, value, help));
}
Argument CommandLine::option(const std::string& name, int& value, const std::string& help) {
  return Argument(app_->add_option(name, value, help));
}
Argument CommandLine::option(const std::string& name, uint64_t& value, const std::string& help) {
  return Argument(app_->add_option(name, value, help));
}
Argument CommandLine::option(const std::string& name, double& value, const std::string& help) {
  return Argument(app_->add_option(name, value, help));
}
Argument CommandLine::option(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  return Argument(app_->add_option(name, values, help));
}
Argument CommandLine::option(const std::string& name, std::vector<int>& values, const std::string& help) {
  return Argument(app_->add_option(name, values, help));
}
Argument CommandLine::option_function(const std::string& name, const std::function<void(const std::string&)>& take,
                                      const std::string& help) {
  return Argument(app_->add_option_function<std::string>(name, take, help));
}
void CommandLine::flag(const std::string& name, bool& value, const std::string& help) {
  app_->add_flag(name, value, help);
}
void CommandLine::footer(const std::string& text) { app_->footer(text); }
void CommandLine::checked(const std::function<void()>& check) { app_->final_callback(check); }

CommandLine CommandLine::subcommand(const std::string& name, const std::string& description) {
  app_->require_subcommand(1);
  return CommandLine(*app_->add_subcommand(name, description));
}

void CommandLine::former_subcommand(const std::string& name, const std::string& now) {
  CLI::App* const former = app_->add_subcommand(name)->group("")->allow_extras();
  former->set_help_flag();
  former->final_callback([name, now] { SCONCE_FAIL(kInvalidArgument, "'", name, "' is now called '", now, "'"); });
}

void CommandLine::former_option(const std::string& name, const std::string& command) {
  const auto refuse = [name, command] {
    SCONCE_FAIL(kInvalidArgument, "'", name, "' is an option of '", command, "'");
  };
  app_->add_flag_callback(name, refuse)->group("");
}

bool CommandLine::parsed() const { return app_->parsed(); }

}  // namespace sconce::server::cli
