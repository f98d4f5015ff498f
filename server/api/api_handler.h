// ApiHandler: answers the HTTP requests of one I/O thread. It holds the thread's snapshot of the models, which is
// checked for each request, and gives each connection an HttpCall. Used only on its I/O thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/console/overview_source.h"
#include "server/http/connections/http_handler.h"
#include "server/http/connections/io_thread.h"
#include "server/rollout/service.h"

namespace sconce::server {

class ApiHandler final : public HttpHandler {
 public:
  // Both arguments outlive the object.
  ApiHandler(Service& service, IoThread& io_thread) : service_(service), io_thread_(io_thread) {}

  std::unique_ptr<HttpStream> open(HttpConnection& connection, RequestReader& reader, Listeners listener,
                                   std::string peer) override;
  void tick() override { catalog(); }  // so that a thread with idle connections does not keep old models alive
  void rest() noexcept override;

  Service& service() noexcept { return service_; }
  size_t index() const noexcept { return io_thread_.index(); }
  ConnectionCounters& counters() noexcept { return io_thread_.counters(); }
  const CredentialSet& credentials() { return io_thread_.credentials(); }
  const Catalog& catalog();  // valid until the current call from the I/O thread returns
  OverviewSource& overview() noexcept { return overview_; }
  // A request went to a replica thread (+1) or came back (-1).
  void lane_requests(int change) noexcept { io_thread_.lane_requests(change); }

 private:
  Service& service_;
  IoThread& io_thread_;
  OverviewSource overview_{service_};
  std::shared_ptr<const Catalog> catalog_;  // null: read when needed
  uint64_t catalog_revision_ = 0;
};

}  // namespace sconce::server
