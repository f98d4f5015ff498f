#include "server/registry/remote/pull.h"

#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "sconce/check.h"
#include "server/registry/remote/remote_cache.h"
#include "server/registry/remote/remote_listing.h"
#include "server/support/failure.h"
#include "server/support/terminal/progress.h"

namespace sconce::server::registry {
namespace {

namespace fs = std::filesystem;

class Pull {
 public:
  Pull(const PullOptions& options, const Pulled& pulled)
      : options_(options),
        pulled_(pulled),
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

  void tell(const RemoteCache::Obtained& obtained) const { pulled_(obtained.digest, obtained.path); }

  const PullOptions& options_;
  const Pulled& pulled_;
  const TransferSettings transfer_;
  const RemoteAccess access_;
  RemoteCache cache_;
};

}  // namespace

void pull(const PullOptions& options, const Pulled& pulled) {
  std::vector<RemoteUrl> urls;
  for (const std::string& text : options.urls) urls.push_back(parse_remote_url(text));
  Pull run(options, pulled);
  for (const RemoteUrl& url : urls) run.bring(url);
}

}  // namespace sconce::server::registry
