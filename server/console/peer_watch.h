// PeerWatch: what the other servers of a model's last push serve, asked now and then while somebody reads the overview.
// Servers are asked as far as weights_peers allows, with the token of weights_peers_token_file or else that of the
// push; one that does not answer says nothing.
//
// look() is for one thread; a thread of its own asks.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sconce/mutex.h"
#include "server/rollout/service.h"

namespace sconce::server {

class PeerWatch {
 public:
  using Clock = std::chrono::steady_clock;
  // A server that serves other weights than this one served when it was asked.
  struct Other {
    std::string url;
    std::string theirs, ours;  // labels, or generations where there are none
    uint64_t generation = 0;   // of this server, when it asked
  };
  // By name and version of the model.
  using Others = std::map<std::pair<std::string, int64_t>, std::vector<Other>>;

  explicit PeerWatch(Service& service) : service_(service) {}

  // What is known by now. Begins to ask again, if that is due.
  Others look(Clock::time_point now);

 private:
  struct Known {
    Mutex mutex;
    bool asking SCONCE_GUARDED_BY(mutex) = false;
    Others others SCONCE_GUARDED_BY(mutex);
  };
  struct Question;
  static Others ask(const Service& service, const std::vector<Question>& questions);
  std::vector<Question> questions() const;

  Service& service_;
  const std::shared_ptr<Known> known_ = std::make_shared<Known>();  // shared with the thread that asks
  Clock::time_point due_{};
};

}  // namespace sconce::server
