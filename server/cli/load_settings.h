// Command-line options that select the model to load and how to load it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sconce/model.h"
#include "server/cli/command_line.h"

namespace sconce::server::cli {

struct LoadSettings {
  std::string path, model, device = "cpu";
  std::vector<std::string> op_libraries;
  int threads = 0;
  bool no_input_checks = false, verify = false;
};

// The positional PACKAGE.
void add_package_option(CommandLine& app, std::string& path);

// --op-library, which may be repeated.
Argument add_op_library_option(CommandLine& app, std::vector<std::string>& paths);
// The positional PACKAGE and the options for loading.
void add_load_options(CommandLine& app, LoadSettings& settings);
LoadOptions load_options(const LoadSettings& settings);
// Loads without a warm-up run, which would take as long as the run itself.
std::shared_ptr<Model> load_for_one_run(const LoadSettings& settings);

}  // namespace sconce::server::cli
