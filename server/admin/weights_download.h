// WeightsDownload: handles GET .../weights/active, which sends the active set as a safetensors file from where its
// values are. Used only by its thread of AdminThreads.
#pragma once

#include <optional>

#include "server/admin/service.h"
#include "server/admin/work/admin_request.h"
#include "server/admin/work/download.h"

namespace sconce::server {

class WeightsDownload {
 public:
  WeightsDownload(Service& service, AdminRequest request, AdminDone done);

  void run();                                    // throws
  void fail(const std::exception_ptr& problem);  // with what run() threw
  void abandon() noexcept;                       // after fail() threw

 private:
  void answer(AdminAnswer answer);

  Service& service_;
  const AdminRequest request_;
  AdminDone done_;
  Download download_;
};

}  // namespace sconce::server
