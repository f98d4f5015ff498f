// A ScriptedService with an I/O thread that the test turns by hand. Clients are the other ends of socket pairs
// (tests/server/http/connections/served.h).
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/api/api_handler.h"
#include "server/http/connections/accepted.h"
#include "server/http/connections/io_thread.h"
#include "tests/server/http/connections/served.h"
#include "tests/server/scripted_service.h"

namespace sconce::test {

struct HttpService : ScriptedService {
  using Client = server::test::Client;
  using Answer = server::test::Answer;

  explicit HttpService(const std::function<void(server::ServerConfig&)>& set = [](auto&) {})
      : ScriptedService([&](server::ServerConfig& config) {
          config.busy_poll = std::chrono::microseconds(0);
          set(config);
        }) {
    io.answer_by(std::make_unique<server::api::ApiHandler>(*admission, *rollout, *telemetry, io));
  }
  ~HttpService() {
    release_runs();
    io.stop();
  }

  Client connect(server::http::Listeners listener = server::http::kPublic) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    Client client{server::Descriptor(ends[0])};
    io.serve(server::http::Accepted(server::Descriptor(ends[1]), {boost::asio::ip::make_address("192.0.2.7"), 50000},
                                    listener, server::http::OpenConnections::Slot(connections, listener)));
    settle();
    return client;
  }
  void settle() {
    for (int i = 0; i < 12; ++i) {
      io.loop().wake();
      io.run_once();
    }
  }
  // More bytes than a socket takes at once.
  void send(Client& client, std::string_view bytes) {
    constexpr size_t kPiece = 64 * 1024;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(kPiece, bytes.size()))) {
      client.send(bytes.substr(0, kPiece));
      settle();
    }
  }
  void send_post(Client& client, const std::string& target, std::string_view body) {
    send(client, "POST " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
                     "\r\n\r\n" + std::string(body));
  }
  // When the clock has come to this time.
  void after(Clock::duration time) {
    pass(time);
    settle();
  }
  // The only answer so far; none: status 0.
  Answer look(Client& client) {
    settle();
    const std::vector<Answer> all = client.answers();
    REQUIRE(all.size() <= 1);
    return all.empty() ? Answer() : all.front();
  }
  // The answer, which another thread may have to make first.
  Answer answer(Client& client) {
    for (;;) {
      if (Answer one = look(client); one.status != 0) return one;
      std::this_thread::yield();
    }
  }
  Answer get(Client& client, const std::string& target, const std::string& fields = {}) {
    client.get(target, fields);
    return answer(client);
  }
  Answer post(Client& client, const std::string& target, std::string_view body, const std::string& fields = {}) {
    client.post(target, body, fields);
    return answer(client);
  }
  // Number of answers with this status, of all routes.
  uint64_t answered(int status) const {
    const auto& known = server::http::ConnectionCounters::kStatuses;
    const size_t at = static_cast<size_t>(std::find(known.begin(), known.end(), status) - known.begin());
    uint64_t count = 0;
    for (const auto& route : telemetry->counters[0].responses) count += route.at(at);
    return count;
  }

  server::http::IoThread io{{config, telemetry->counters, connections, request_memory, admission->credentials,
                             telemetry->refusals, telemetry->failures, &ScriptedService::now},
                            0};
};

// Keeps all threads for long work busy.
class BusyPool {
 public:
  explicit BusyPool(server::ThreadPool& pool) {
    for (One& one : all_) {
      one.task.context = &one;
      one.task.work = [](void* context) noexcept {
        BusyPool& self = static_cast<One*>(context)->busy;
        self.open_.wait(false);
        ++self.done_;
        self.done_.notify_all();
      };
      pool.submit(one.task);
    }
  }
  void let_go() {
    open_ = true;
    open_.notify_all();
    for (size_t now = done_; now < all_.size(); now = done_) done_.wait(now);
  }

 private:
  struct One {
    explicit One(BusyPool& busy) : busy(busy) {}
    BusyPool& busy;
    server::ThreadPool::Task task;
  };
  std::atomic<bool> open_{false};
  std::atomic<size_t> done_{0};
  // The most threads of a ThreadPool.
  std::array<One, 4> all_{One(*this), One(*this), One(*this), One(*this)};
};

// A request to the fake model "m", whose second output value is 14.
inline const std::string kInferRequest =
    R"({"inputs": [{"name": "INPUT__0", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]})";
inline const std::string kInferPath = "/v2/models/m/infer";

// A request to a model of bounded inputs.
inline const std::string kBounded = "loops.prefix", kBoundedPath = "/v2/models/loops.prefix/infer";
inline const std::string kBoundedRequest =
    R"({"inputs": [{"name": "INPUT__0", "shape": [1, 5], "datatype": "INT64", "data": [1, 2, 3, 4, 5]}]})";

}  // namespace sconce::test
