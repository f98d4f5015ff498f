#include "server/rollout/weights_download.h"

#include <fmt/core.h>

#include <memory>

#include "sconce/check.h"
#include "sconce/weight_sources.h"
#include "server/http/client/url_text.h"
#include "server/http/query.h"
#include "server/registry/documents.h"
#include "server/rollout/served_weights.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "server/support/time_text.h"

namespace sconce::server::rollout {
namespace {

constexpr size_t kBlock = size_t{1} << 20;

DownloadedFile described(std::unique_ptr<WeightSetFile> set) {
  const std::string digest = set->digest();
  std::string fields = fmt::format(
      "ETag: \"{0}\"\r\nSconce-Weight-Version: {1}\r\nSconce-Generation: {1}\r\n"  // deprecated: the second
      "Sconce-Weights-Label: {2}\r\nSconce-Weights-Digest: {0}\r\n",
      digest, set->info().weight_version, http::encoded_value(set->info().label));
  return {std::move(set), std::move(fields)};
}

}  // namespace

DownloadedFile open_active_weights(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  std::unique_ptr<WeightSetFile> set = model_of(rollout, request)->model().open_weights(WeightState::kActive);
  SCONCE_CHECK(set->info().missing.empty(), kUnavailable, "the model has no weights yet: constant '",
               set->info().missing, "' has no value");
  return described(std::move(set));
}

DownloadedFile open_named_set(Rollout& rollout, const AdminRequest& request) {
  const http::Query query(request.query, {});
  return described(model_of(rollout, request)->model().open_set(request.set));
}

WeightsDownload::WeightsDownload(Rollout& rollout, AdminRequest request, AdminDone done, OpenDownload& open)
    : rollout_(rollout),
      request_(std::move(request)),
      done_(std::move(done)),
      open_(open),
      download_(*request_.source.transport, rollout.config.write_timeout) {}

void WeightsDownload::start(Rollout& rollout, AdminRequest request, AdminDone done, OpenDownload& open) {
  const auto task = std::make_shared<WeightsDownload>(rollout, std::move(request), std::move(done), open);
  rollout.admin_threads.run([task] { task->run(); }, [task](const std::exception_ptr& e) { task->fail(e); },
                            [task] { task->abandon(); });
}

void WeightsDownload::run() {
  const LogRequest log_request(request_.id, request_.peer);
  DownloadedFile opened = open_(rollout_, request_);
  SafetensorsEncoder encoder(std::move(opened.file));
  const auto check = [&] {
    SCONCE_CHECK(!rollout_.operations.stopping(), kUnavailable, "the server is shutting down");
  };

  const std::string head = fmt::format(
      "HTTP/1.1 200 OK\r\nDate: {}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n{}"
      "Connection: close\r\n\r\n",
      http_date(std::chrono::system_clock::now()), encoder.bytes(), opened.fields);
  download_.send(std::as_bytes(std::span(head)), check);
  if (!request_.head_only) {
    const auto scratch = std::make_unique<std::byte[]>(kBlock);
    for (;;) {
      const std::span<const std::byte> piece = encoder.next({scratch.get(), kBlock});
      if (piece.empty()) break;
      download_.send(piece, check);
    }
  }
  answer({});
}

void WeightsDownload::fail(const std::exception_ptr& problem) {
  const Failure failure = describe_failure(problem);
  // The client detects that bytes are missing.
  if (download_.sent() > 0) log_warn("a file was not sent to the end: {}", printable(failure.message));
  answer({failure.status, registry::error_document(failure.message)});
}

void WeightsDownload::abandon() noexcept { answer({507, {}}); }

void WeightsDownload::answer(AdminAnswer answer) {
  if (!done_) return;
  answer.sent = download_.sent();
  std::exchange(done_, nullptr)(std::move(answer));
}

}  // namespace sconce::server::rollout
