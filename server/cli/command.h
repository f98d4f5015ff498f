// The program's subcommands. Each function adds its options to `app` and returns a callable that runs the parsed
// command and returns the exit status. Errors are thrown; main prints them.
#pragma once

#include <functional>

#include "server/cli/command_line.h"

namespace sconce::server::cli {

using Action = std::function<int()>;

Action add_bench(CommandLine& app);
Action add_check(CommandLine& app);
Action add_compare(CommandLine& app);
Action add_health(CommandLine& app);
Action add_inspect(CommandLine& app);
Action add_ops(CommandLine& app);
Action add_pack(CommandLine& app);
Action add_pull(CommandLine& app);
Action add_run(CommandLine& app);
Action add_serve(CommandLine& app);
Action add_sign(CommandLine& app);
Action add_top(CommandLine& app);
Action add_verify(CommandLine& app);
Action add_weights(CommandLine& app);

}  // namespace sconce::server::cli
