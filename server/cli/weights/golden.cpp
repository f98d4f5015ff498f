#include "server/cli/weights/golden.h"

#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "server/cli/weights/servers.h"
#include "server/support/json_document.h"

namespace sconce::server::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{200};

struct Progress {
  std::string state, problem;  // problem: why there is no state
  uint64_t recorded = 0;
};

Progress progress_of(const http::Answer& answer) {
  const OrderedJson document = OrderedJson::parse(answer.body, nullptr, false);
  if (!answer.ok()) return {"", answer.reason()};
  const auto recording = document.is_object() ? document.find("recording") : document.end();
  if (recording == document.end() || !recording->is_object()) return {"", "the model was loaded again meanwhile"};
  return {recording->value("state", ""), "", recording->value("recorded", uint64_t{0})};
}

}  // namespace

int record_golden(const http::AdminClient& server, const GoldenOptions& options) {
  const std::string target = http::admin_path(options.model, options.version) + "/golden";
  const auto failed = [&](const std::string& reason) {
    report(server, false, reason);
    return 1;
  };
  const http::Answer begun = server.post(target + "/record", dump({{"requests", options.requests}}));
  if (!begun.ok()) return failed(begun.reason());
  const Clock::time_point end = Clock::now() + std::chrono::seconds(options.longest_s);
  Progress progress;
  do {
    std::this_thread::sleep_for(kLook);
    progress = progress_of(server.get(target));
    if (progress.state.empty()) return failed(progress.problem);
  } while (progress.state == "running" && (options.longest_s == 0 || Clock::now() < end));
  const http::Answer ended = server.post(target + "/recording");
  if (!ended.ok()) return failed(ended.reason());
  const http::Answer taken = fetch_file(server, target + "/recording", options.out);
  if (!taken.ok()) return failed(taken.reason());
  // The recording on the server is no longer needed.
  const http::Answer dropped = server.post(target + "/record", dump({{"requests", 0}}));
  if (!dropped.ok()) return failed("the recording is not dropped: " + dropped.reason());
  if (progress.state == "running") progress = {"ended", "", progress.recorded};
  report(server, true,
         fmt::format("{} of {} requests are in {}{}", progress.recorded, options.requests, options.out,
                     progress.state == "full"    ? ": the setting golden_recording leaves room for no more"
                     : progress.state == "ended" ? ": the time was over, or other weights became active"
                                                 : ""));
  return 0;
}

}  // namespace sconce::server::cli
