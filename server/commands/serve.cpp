// `sconce serve`: settings from the table, the file, the environment and the command line; then the server.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>

#include "server/commands/command.h"
#include "server/commands/load_settings.h"
#include "server/config.h"
#include "server/server.h"

namespace sconce::commands {
namespace {

struct Options {
  std::vector<std::string> serve;            // packages and repositories
  std::map<std::string, std::string> flags;  // key of a setting and its value
  std::vector<std::string> model_settings, op_libraries;
  std::string config;
  bool print_config = false;
};

int serve(const Options& options) {
  if (options.print_config) {
    std::cout << annotated_configuration();
    return 0;
  }
  ServerConfig config;
  if (!options.config.empty()) config.read_file(options.config);
  config.read_environment([](const char* name) { return std::getenv(name); });
  for (const auto& [key, value] : options.flags) config.set(key, value, flag_name(key));
  for (const std::string& assignment : options.model_settings) config.set_model(assignment, "--set");
  if (!options.op_libraries.empty())
    config.set_model(fmt::format("*.op_libraries={}", fmt::join(options.op_libraries, ",")), "--op-library");
  if (!options.serve.empty()) config.serve = options.serve;
  run_server(config);
  return 0;
}

}  // namespace

Action add_serve(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("PACKAGE_OR_REPOSITORY", options->serve,
                 "A package (.pt2, .so or unpacked), NAME=PACKAGE, or a directory of packages");
  app.add_option("--config", options->config, "Read settings from this file; see conf/sconce.conf")->type_name("FILE");
  app.add_option("--set", options->model_settings, "A model's setting, or that of all models: *.KEY=VALUE")
      ->type_name("MODEL.KEY=VALUE")
      ->allow_extra_args(false)
      ->take_all();
  add_op_library_option(app, options->op_libraries);
  app.add_flag("--print-config", options->print_config, "Print every setting with its text and default, and end");
  for (const SettingRow& row : setting_rows()) {
    if (row.of_model || row.key == "serve") continue;
    const std::string key(row.key);
    app.add_option_function<std::string>(
           flag_name(row.key), [options, key](const std::string& value) { options->flags[key] = value; },
           std::string(row.text) + " [" + std::string(row.default_value) + "]")
        ->type_name("VALUE")
        ->take_last();
  }
  return [options] { return serve(*options); };
}

}  // namespace sconce::commands
