// ApiHandler: answers the HTTP requests of one I/O thread. It holds the thread's snapshot of the models, which is
// checked for each request, and gives each connection an HttpCall. Used only on its I/O thread.
#pragma once

#include <memory>
#include <string>

#include "server/api/admission.h"
#include "server/console/overview_source.h"
#include "server/http/connections/http_handler.h"
#include "server/http/connections/io_thread.h"
#include "server/rollout/rollout.h"
#include "server/support/cached_snapshot.h"
#include "server/telemetry/telemetry.h"

namespace sconce::server::api {

class ApiHandler final : public http::HttpHandler {
 public:
  // All arguments outlive the object.
  ApiHandler(Admission& admission, rollout::Rollout& rollout, telemetry::Telemetry& telemetry,
             http::IoThread& io_thread)
      : admission_(admission),
        rollout_(rollout),
        telemetry_(telemetry),
        io_thread_(io_thread),
        overview_(rollout, telemetry) {}

  std::unique_ptr<http::HttpStream> open(http::HttpConnection& connection, http::RequestReader& reader,
                                         http::Listeners listener, std::string peer) override;
  void tick() override { catalog(); }  // so that a thread with idle connections does not keep old models alive
  void rest() noexcept override;

  Admission& admission() noexcept { return admission_; }
  rollout::Rollout& rollout() noexcept { return rollout_; }
  telemetry::Telemetry& telemetry() noexcept { return telemetry_; }
  size_t index() const noexcept { return io_thread_.index(); }
  http::ConnectionCounters& counters() noexcept { return io_thread_.counters(); }
  const http::CredentialSet& credentials() { return io_thread_.credentials(); }
  const registry::Catalog& catalog();  // valid until the current call from the I/O thread returns
  console::OverviewSource& overview() noexcept { return overview_; }
  // A request went to a replica thread (+1) or came back (-1).
  void lane_requests(int change) noexcept { io_thread_.lane_requests(change); }

 private:
  Admission& admission_;
  rollout::Rollout& rollout_;
  telemetry::Telemetry& telemetry_;
  http::IoThread& io_thread_;
  console::OverviewSource overview_;
  CachedSnapshot<registry::Catalog> catalog_;
};

}  // namespace sconce::server::api
