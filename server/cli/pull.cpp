// `sconce pull`: downloads remote packages.
#include "server/registry/remote/pull.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>

#include "server/cli/command.h"
#include "server/registry/remote/remote_url.h"
#include "src/support/hex.h"
#include "src/support/sha256.h"

namespace sconce::server::cli {
namespace {

int pull_packages(const registry::PullOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL would raise it when it writes to a closed connection
  std::signal(SIGXFSZ, SIG_IGN);  // the write to a file at its size limit reports the error
  registry::pull(options, [](const Sha256Digest& digest, const std::filesystem::path& path) {
    std::cout << fmt::format("{}  {}\n", to_hex(digest), path.native()) << std::flush;
  });
  return 0;
}

}  // namespace

Action add_pull(CommandLine& app) {
  auto options = std::make_shared<registry::PullOptions>();
  app.option("URL", options->urls,
             fmt::format("{}; an address that does not end in .pt2 is a repository, except https",
                         fmt::join(registry::kRemoteForms, ", ")))
      .required();
  app.option("--to", options->to, "The folder for the files; without it, they are in the cache alone")
      .placeholder("DIR");
  app.option("--cache", options->cache, "The folder of the cache [~/.cache/sconce]").placeholder("DIR");
  app.option("--cache-size", options->cache_size, "Bytes that it may hold [no limit]").placeholder("BYTES");
  app.option("--connections", options->connections, "Ranges that are fetched at the same time")
      .placeholder("N")
      .positive();
  app.option("--stall", options->stall,
             "Abort and retry a transfer that stays below 1 KiB/s for this number of seconds")
      .placeholder("SECONDS")
      .positive();
  app.option("--ca", options->ca, "Certificates in PEM to trust [the system's]").placeholder("FILE");
  app.footer(
      "Prints the SHA-256 and the path of each file. An interrupted download is resumed.\n"
      "Credentials: AWS_ACCESS_KEY_ID and others as for the AWS CLI, GS_ACCESS_KEY_ID, HF_TOKEN, ~/.netrc.");
  return [options] { return pull_packages(*options); };
}

}  // namespace sconce::server::cli
