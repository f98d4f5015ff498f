// `sconce pull`: downloads remote packages.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>

#include "sconce/check.h"
#include "server/cli/command.h"
#include "server/registry/remote/remote_cache.h"
#include "server/registry/remote/remote_listing.h"
#include "server/support/failure.h"
#include "server/support/terminal/progress.h"

namespace sconce::server::commands {
namespace {

namespace fs = std::filesystem;

struct PullOptions {
  std::vector<std::string> urls;
  std::string to, cache, ca;
  int connections = 8, stall = 30;
  uint64_t cache_size = 0;
};

class Pull {
 public:
  explicit Pull(const PullOptions& options)
      : options_(options),
        transfer_{.ca = options.ca, .stall = std::chrono::seconds(options.stall)},
        access_(read_remote_access(Environment::of_process(), transfer_)),
        cache_(options.cache, options.cache_size) {}

  void bring(const RemoteUrl& url) {
    if (url.is_package()) return bring_package(url);
    SCONCE_CHECK(!options_.to.empty(), kInvalidArgument, url.shown(), " is a repository, which needs --to");
    Transfer transfer(transfer_);
    const std::vector<RemoteFile> files = files_of_models(list_remote(url, access_, transfer));
    SCONCE_CHECK(!files.empty(), kNotFound, "no package in ", url.shown());
    for (const RemoteFile& file : files) {
      const std::string path = url.path.empty() ? file.path : url.path + "/" + file.path;
      tell(obtain(url.with_path(path), file.validator, file.path));
    }
  }

 private:
  void bring_package(const RemoteUrl& url) {
    SCONCE_CHECK(options_.to.empty() || is_safe_path(url.file()), kInvalidArgument, url.shown(), " names no file");
    tell(obtain(url, "", url.file()));
    // Without --to, there is no place for a signature beside its package.
    if (options_.to.empty()) return;
    const RemoteUrl signature = url.beside(".sig");
    const std::exception_ptr problem = exception_of([&] { tell(obtain(signature, "", signature.file())); });
    if (!problem) return;
    const ErrorCode code = describe_failure(problem).code;
    if (code != ErrorCode::kNotFound && code != ErrorCode::kForbidden) std::rethrow_exception(problem);
  }

  RemoteCache::Obtained obtain(const RemoteUrl& url, const std::string& listed, const std::string& name) {
    fs::path place;
    if (!options_.to.empty()) {
      place = fs::path(options_.to) / name;
      std::error_code problem;
      fs::create_directories(place.parent_path(), problem);
      SCONCE_CHECK(!problem, kIo, "cannot make the folder ", place.parent_path().native(), ": ", problem.message());
    }
    ProgressBar bar(url.file());
    DownloadOptions options;
    options.transfer = transfer_;
    options.connections = options_.connections;
    options.progress = [&bar](uint64_t done, uint64_t total) { bar.show(done, total); };
    return cache_.obtain(url, access_, listed, place, std::move(options));
  }

  static void tell(const RemoteCache::Obtained& obtained) {
    std::cout << fmt::format("{}  {}\n", hex_of(obtained.digest), obtained.path.native()) << std::flush;
  }

  const PullOptions options_;
  const TransferSettings transfer_;
  const RemoteAccess access_;
  RemoteCache cache_;
};

int pull(const PullOptions& options) {
  std::signal(SIGXFSZ, SIG_IGN);  // the write to a file at its size limit reports the error
  std::vector<RemoteUrl> urls;
  for (const std::string& text : options.urls) urls.push_back(parse_remote_url(text));
  Pull run(options);
  for (const RemoteUrl& url : urls) run.bring(url);
  return 0;
}

}  // namespace

Action add_pull(CommandLine& app) {
  auto options = std::make_shared<PullOptions>();
  app.option("URL", options->urls,
             fmt::format("{}; an address that does not end in .pt2 is a repository, except https",
                         fmt::join(kRemoteForms, ", ")))
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
  return [options] { return pull(*options); };
}

}  // namespace sconce::server::commands
