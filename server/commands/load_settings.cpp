#include "server/commands/load_settings.h"

namespace sconce::commands {

void add_load_options(CLI::App& app, LoadSettings& settings) {
  app.add_option("PACKAGE", settings.path, "A .pt2 archive, a model's .so or a directory with an archive's layout")
      ->required();
  app.add_option("--model", settings.model, "Which model of the archive");
  app.add_option("--device", settings.device, "cpu, cuda or cuda:N");
  app.add_flag("--no-input-checks", settings.no_input_checks, "Leave sizes, ranges and strides of inputs unchecked");
  app.add_flag("--verify", settings.verify, "Check the weights' checksums, too");
}

LoadOptions load_options(const LoadSettings& settings) {
  LoadOptions options;
  options.model_name = settings.model;
  options.devices = {parse_device(settings.device)};
  options.threads = settings.threads;
  options.check_inputs = !settings.no_input_checks;
  options.verify = settings.verify;
  return options;
}

std::shared_ptr<Model> load_model(const LoadSettings& settings) {
  return Model::load(Package::open(settings.path), load_options(settings));
}

}  // namespace sconce::commands
