#include "server/cli/load_settings.h"

namespace sconce::server::cli {

void add_package_option(CommandLine& app, std::string& path) {
  app.option("PACKAGE", path, "A .pt2 archive, a model's .so or a directory with an archive's layout").required();
}

Argument add_op_library_option(CommandLine& app, std::vector<std::string>& paths) {
  return app.option("--op-library", paths, "A shared library with custom operators; may be given again")
      .placeholder("LIB.so")
      .one_each();
}

void add_load_options(CommandLine& app, LoadSettings& settings) {
  add_package_option(app, settings.path);
  app.option("--model", settings.model, "Which model of the archive");
  app.option("--device", settings.device, "cpu, cuda or cuda:N");
  app.flag("--no-input-checks", settings.no_input_checks, "Leave sizes, ranges and strides of inputs unchecked");
  add_op_library_option(app, settings.op_libraries);
  app.flag("--verify", settings.verify, "Check the weights' checksums, too");
}

LoadOptions load_options(const LoadSettings& settings) {
  LoadOptions options;
  options.model_name = settings.model;
  options.devices = {parse_device(settings.device)};
  options.threads = settings.threads;
  options.check_inputs = !settings.no_input_checks;
  options.verify = settings.verify;
  options.op_libraries.assign(settings.op_libraries.begin(), settings.op_libraries.end());
  options.trial.program = "/proc/self/exe";
  return options;
}

std::shared_ptr<Model> load_for_one_run(const LoadSettings& settings) {
  LoadOptions options = load_options(settings);
  options.trial.program.clear();
  return Model::load(Package::open(settings.path), options);
}

}  // namespace sconce::server::cli
