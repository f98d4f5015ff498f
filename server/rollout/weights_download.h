// WeightsDownload: executes GET .../weights/active, GET .../sets/NAME/weights and GET .../golden/recording, which send
// a safetensors file directly from the values' memory. Used only by its thread of AdminThreads.
#pragma once

#include <memory>
#include <string>

#include "sconce/weight_sources.h"
#include "server/rollout/rollout.h"
#include "server/rollout/work/admin_request.h"
#include "server/rollout/work/download.h"

namespace sconce::server::rollout {

struct DownloadedFile {
  std::unique_ptr<WeightFile> file;
  std::string fields;  // header fields of the answer, each with its line end
};
using OpenDownload = DownloadedFile(Rollout& rollout, const AdminRequest& request);

class WeightsDownload {
 public:
  // open: opens the file to send. May throw.
  WeightsDownload(Rollout& rollout, AdminRequest request, AdminDone done, OpenDownload& open);

  void run();                                    // may throw
  void fail(const std::exception_ptr& problem);  // with the exception of run()
  void abandon() noexcept;                       // after fail() threw

  // Runs the download on a new thread. kUnavailable.
  static void start(Rollout& rollout, AdminRequest request, AdminDone done, OpenDownload& open);

 private:
  void answer(AdminAnswer answer);

  Rollout& rollout_;
  const AdminRequest request_;
  AdminDone done_;
  OpenDownload& open_;
  Download download_;
};

OpenDownload open_active_weights, open_named_set;

}  // namespace sconce::server::rollout
