// Options of the command line that say which model to load and how.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "sconce/model.h"

namespace sconce::server::commands {

struct LoadSettings {
  std::string path, model, device = "cpu";
  std::vector<std::string> op_libraries;
  int threads = 0;
  bool no_input_checks = false, verify = false;
};

// --op-library, which may be given several times.
CLI::Option* add_op_library_option(CLI::App& app, std::vector<std::string>& paths);
// The positional PACKAGE and the options for loading.
void add_load_options(CLI::App& app, LoadSettings& settings);
LoadOptions load_options(const LoadSettings& settings);
std::shared_ptr<Model> load_model(const LoadSettings& settings);

}  // namespace sconce::server::commands
