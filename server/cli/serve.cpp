// `sconce serve`: reads settings from defaults, file, environment and command line, then runs the server.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/close_range.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <system_error>

#include "sconce/check.h"
#include "server/cli/command.h"
#include "server/cli/load_settings.h"
#include "server/server.h"
#include "server/support/config.h"
#include "server/support/left_out.h"
#include "server/support/process/end_signals.h"
#include "server/support/process/environment_check.h"
#include "server/telemetry/otlp/otel_environment.h"

namespace sconce::server::cli {
namespace {

struct ServeOptions {
  std::vector<std::string> serve;            // packages and repositories
  std::map<std::string, std::string> flags;  // setting's key and value
  std::vector<std::string> model_settings, op_libraries;
  std::string config;
  bool print_config = false;
};

// Replaces this process with a new run of the program with the same arguments, which frees its devices and files.
[[noreturn]] void start_anew() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<char*> arguments;
  for (size_t at = 0; at < words.size(); at = words.find('\0', at) + 1) {
    arguments.push_back(words.data() + at);
    if (words.find('\0', at) == std::string::npos) break;
  }
  arguments.push_back(nullptr);
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv("/proc/self/exe", arguments.data());
  SCONCE_FAIL(kInternal, "the program cannot be restarted: ", std::generic_category().message(errno));
}

// The settings on the command line.
void take_arguments(const ServeOptions& options, ServerConfig& config) {
  for (const auto& [key, value] : options.flags) config.set(key, value, flag_name(key));
  for (const std::string& assignment : options.model_settings) config.set_model(assignment, "--set");
  if (!options.op_libraries.empty())
    config.set_model(fmt::format("*.op_libraries={}", fmt::join(options.op_libraries, ",")), "--op-library");
  if (!options.serve.empty()) config.serve = options.serve;
}

// Warnings about ignored environment variables: one line for OpenTelemetry's, and one for Sconce's own.
std::vector<std::string> warnings_of(const ServeOptions& options, const ServerConfig& config,
                                     const telemetry::OtelProblems& otel) {
  std::vector<std::string> warnings;
  const bool told = options.flags.contains("otlp") || std::getenv(environment_name("otlp").c_str()) != nullptr;
  const bool off = config.otlp.empty() || config.otlp == "off";
  std::string problems = told ? "" : otel.endpoint;
  if (!otel.others.empty() && !(told && off)) problems += (problems.empty() ? "" : "; ") + otel.others;
  if (!problems.empty()) warnings.push_back("environment variables that are not followed: " + problems);
  if (std::string unknown = unknown_variables(environ); !unknown.empty()) warnings.push_back(std::move(unknown));
  return warnings;
}

int serve(const ServeOptions& options) {
  if (options.print_config) {
    std::cout << annotated_configuration();
    return 0;
  }
  end_on_signals();
  std::signal(SIGHUP, SIG_IGN);  // until the server handles it by reading its files again
  ServerConfig config;
  if (!options.config.empty()) config.read_file(options.config);
  const auto lookup = [](const char* name) { return std::getenv(name); };
  const telemetry::OtelProblems otel = telemetry::read_otel_environment(config, lookup);
  config.read_environment(lookup);
  take_arguments(options, config);
  if (run_server(config, warnings_of(options, config, otel))) start_anew();
  return 0;
}

}  // namespace

Action add_serve(CommandLine& app) {
  auto options = std::make_shared<ServeOptions>();
  app.option("PACKAGE_OR_REPOSITORY", options->serve,
             "A package (.pt2, .so or unpacked), NAME=PACKAGE, or a directory of packages; or an address of these (s3, "
             "gs, az, hf, https)");
  app.option("--config", options->config, "Read settings from this file; see conf/sconce.conf").placeholder("FILE");
  app.option("--set", options->model_settings, "A model's setting, or that of all models: *.KEY=VALUE")
      .placeholder("MODEL.KEY=VALUE")
      .one_each();
  add_op_library_option(app, options->op_libraries);
  app.flag("--print-config", options->print_config, "Print every setting with its text and default, and end");
  for (const SettingRow& row : setting_rows()) {
    if (row.of_model || row.key == "serve") continue;
    const std::string key(row.key);
    app.option_function(
           flag_name(row.key), [options, key](const std::string& value) { options->flags[key] = value; },
           std::string(row.text) + " [" + std::string(row.default_value) + "]" + LeftOut::remark(row.key))
        .placeholder("VALUE")
        .last_counts();
  }
  app.checked([options] {
    ServerConfig scratch;
    take_arguments(*options, scratch);
  });
  return [options] { return serve(*options); };
}

}  // namespace sconce::server::cli
