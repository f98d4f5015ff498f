// GrpcFront: the server's gRPC side. Loads libsconce_grpc, accepts connections for it, and answers its calls: inference
// by GrpcCall, all other methods by GrpcDocument.
//
// gRPC's own listener stops permanently when descriptors run out, and has no limit of connections. This listener makes
// room like HTTP's, and a guard polls each connection.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "server/api/admission.h"
#include "server/grpc/boundary.h"
#include "server/grpc/connection_guard.h"
#include "server/grpc/grpc_call.h"
#include "server/support/timer_queue.h"
#include "server/telemetry/telemetry.h"

namespace sconce::server::rpc {

class GrpcFront final : private GrpcHost {
 public:
  // Binds and listens. first_place: as in CallSlots. kUnavailable without libsconce_grpc; kIo, kInvalidArgument.
  GrpcFront(api::Admission& admission, telemetry::Telemetry& telemetry, TimerQueue& clock, size_t first_place);
  ~GrpcFront();

  std::string address() const { return address_; }  // with the port that the system chose
  bool is_loopback() const noexcept { return loopback_; }
  void start();
  // Stops accepting, and cancels calls still in progress at `end`. Returns at once; stopped() reports completion.
  void stop(std::chrono::steady_clock::time_point end);
  bool stopped() const noexcept { return stopped_.load(std::memory_order_acquire) && room_.empty(); }

 private:
  class Descriptor {
   public:
    explicit Descriptor(int number = -1) noexcept : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    ~Descriptor();
    void reset(int number) noexcept;
    operator int() const noexcept { return number_; }

   private:
    int number_;
  };

  std::shared_ptr<GrpcAnswering> answer(api::GrpcMethod method, const GrpcCaller& caller, std::string_view request,
                                        Done done) noexcept override;
  GrpcInference* inference() noexcept override;
  void lend(std::string_view peer, std::function<void()> work) noexcept override;
  void count(api::GrpcMethod method, GrpcCode code) noexcept override { room_.count(method, code, {}); }
  void rest() noexcept override;
  void log(bool is_error, std::string_view text) noexcept override;

  void listen(const Address& address);
  void run() noexcept;
  bool accept_one() noexcept;
  bool has_room() noexcept;
  void note_connections(size_t closed) noexcept;
  void look() noexcept;

  api::Admission& admission_;
  telemetry::Telemetry& telemetry_;
  CallRoom room_;
  Descriptor listener_, wake_;
  std::string address_;
  bool loopback_ = false;
  ConnectionGuard guard_;  // used by the thread, like the next members
  std::chrono::steady_clock::time_point complain_again_{};
  bool ready_ = false;
  std::unique_ptr<GrpcServer> server_;
  std::atomic<bool> stopping_{false}, stopped_{false};
  std::thread thread_, stopper_;
};

}  // namespace sconce::server::rpc
