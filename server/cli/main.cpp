// The program: selects the subcommand, prints errors, sets the exit status: 0 success, 1 failed or would not run, 2
// usage error or unreadable file.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "sconce/error.h"
#include "sconce/mapped_files.h"
#include "sconce/trial/trial_process.h"
#include "sconce/version.h"
#include "server/cli/command.h"
#include "server/cli/trial.h"
#include "server/support/left_out.h"
#include "server/support/process/end_signals.h"

namespace {

struct Command {
  const char* name;
  const char* description;
  sconce::server::cli::Action (*add)(sconce::server::cli::CommandLine&);
};

constexpr Command kCommands[] = {
    {"inspect", "Show the description in a package", sconce::server::cli::add_inspect},
    {"check", "Check that a package is sound and would run here", sconce::server::cli::add_check},
    {"compare", "Compare a package with its PyTorch model in Python", sconce::server::cli::add_compare},
    {"verify", "Check signatures", sconce::server::cli::add_verify},
    {"run", "Run a model once on files or random inputs", sconce::server::cli::add_run},
    {"bench", "Measure load time, latency, throughput and memory", sconce::server::cli::add_bench},
    {"serve", "Serve packages over HTTP", sconce::server::cli::add_serve},
    {"health", "Ask a server whether it is ready", sconce::server::cli::add_health},
    {"top", "Show the activity of a running server", sconce::server::cli::add_top},
    {"ops", "List the operators that this build implements", sconce::server::cli::add_ops},
    {"weights", "Push weights to running servers, show them, roll them back", sconce::server::cli::add_weights},
    {"pull", "Fetch packages from object storage, a hub or the web", sconce::server::cli::add_pull},
    {"sign", "Sign packages, weights and libraries of operators", sconce::server::cli::add_sign},
    {"pack", "Make a package of a directory with an archive's layout", sconce::server::cli::add_pack},
};

constexpr int kFailed = 1, kUnusable = 2;

// parsed: the command line was parsed successfully.
int status_of(const sconce::Error& error, bool parsed) {
  using sconce::ErrorCode;
  if (!parsed) return kUnusable;
  switch (error.code()) {
    case ErrorCode::kIo:
    case ErrorCode::kCorruptPackage:
    case ErrorCode::kNotFound:
      return kUnusable;
    default:
      return kFailed;
  }
}

int dispatch(CLI::App& app, int argc, char** argv, bool& parsed) {
  app.set_version_flag("--version", "sconce " + sconce::version());
  app.require_subcommand(0, 1);
  std::vector<std::pair<CLI::App*, sconce::server::cli::Action>> commands;
  for (const Command& command : kCommands) {
    CLI::App* sub =
        app.add_subcommand(command.name, command.description + sconce::server::LeftOut::remark(command.name));
    sconce::server::cli::CommandLine line(*sub);
    commands.emplace_back(sub, command.add(line));
  }
  app.parse(argc, argv);
  parsed = true;
  for (const auto& [sub, action] : commands)
    if (sub->parsed()) return action();
  std::cout << app.help();
  return kUnusable;
}

}  // namespace

int main(int argc, char** argv) {
  // The kernel ignores the default action of signals for a container's first process.
  if (::getpid() == 1) sconce::server::end_on_signals();
  sconce::guard_package_faults();
  bool parsed = false;
  try {
    // The child process of another process of this program: it parses no options, because its start time matters.
    if (argc == 2 && std::string_view(argv[1]) == sconce::kTrialCommand) sconce::server::cli::run_trial_task();
    CLI::App app("Runs and serves PyTorch AOTInductor packages (.pt2) without PyTorch.", "sconce");
    try {
      return dispatch(app, argc, argv, parsed);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : kUnusable;
    }
  } catch (const sconce::Error& error) {
    std::cerr << "sconce: " << error.what() << "\n";
    return status_of(error, parsed);
  } catch (const std::bad_alloc&) {
    std::cerr << "sconce: out of memory\n";
    return kFailed;
  } catch (const std::exception& error) {
    std::cerr << "sconce: " << error.what() << "\n";
    return kFailed;
  }
}
