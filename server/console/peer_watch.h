// PeerWatch: the weights that the other servers of a model's last push serve, polled while the overview has readers. It
// asks servers that weights_peers allows, with the token in weights_peers_token_file or else the push's token; a server
// without an answer is skipped.
//
// look() is for one thread; the object's own thread sends the requests.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sconce/mutex.h"
#include "server/rollout/rollout.h"

namespace sconce::server::console {

class PeerWatch {
 public:
  using Clock = std::chrono::steady_clock;
  // A server whose weights differed from this server's when it was asked.
  struct Other {
    std::string url;
    std::string theirs, ours;     // labels, or weight versions if there are no labels
    uint64_t weight_version = 0;  // weight version of this server at that time
  };
  // By name and version of the model.
  using Others = std::map<std::pair<std::string, int64_t>, std::vector<Other>>;

  explicit PeerWatch(rollout::Rollout& rollout) : rollout_(rollout) {}

  // The current findings. Starts another poll, if one is due.
  Others look(Clock::time_point now);

 private:
  struct Known {
    Mutex mutex;
    bool asking SCONCE_GUARDED_BY(mutex) = false;
    Others others SCONCE_GUARDED_BY(mutex);
  };
  struct Question;
  static Others ask(const rollout::Rollout& rollout, const std::vector<Question>& questions);
  std::vector<Question> questions() const;

  rollout::Rollout& rollout_;
  const std::shared_ptr<Known> known_ = std::make_shared<Known>();  // shared with the polling thread
  Clock::time_point due_{};
};

}  // namespace sconce::server::console
