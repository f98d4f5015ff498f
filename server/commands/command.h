// The subcommands of the program. Each function adds its options to `app` and returns a callable, which runs the parsed
// command and returns the exit status. Errors are thrown; main prints them.
#pragma once

#include <CLI/App.hpp>
#include <functional>

namespace sconce::server::commands {

using Action = std::function<int()>;

Action add_bench(CLI::App& app);
Action add_check(CLI::App& app);
Action add_health(CLI::App& app);
Action add_inspect(CLI::App& app);
Action add_ops(CLI::App& app);
Action add_pack(CLI::App& app);
Action add_run(CLI::App& app);
Action add_serve(CLI::App& app);
Action add_weights(CLI::App& app);

}  // namespace sconce::server::commands
