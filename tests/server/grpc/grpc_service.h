// A ScriptedService with what its gRPC calls share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include "server/grpc/grpc_call.h"
#include "tests/server/scripted_service.h"

namespace sconce::test {

struct GrpcService : ScriptedService {
  using ScriptedService::ScriptedService;
  ~GrpcService() { wait_until_empty(); }

  // Number of ended calls with this status.
  uint64_t counted(server::api::GrpcMethod method, server::rpc::GrpcCode code) const {
    uint64_t count = 0;
    for (const auto& bucket : telemetry->calls.calls[static_cast<size_t>(method)][static_cast<size_t>(code)].durations)
      count += bucket;
    return count;
  }
  // Until no run of an ended call is in progress.
  void wait_until_empty() const {
    while (!room.empty()) std::this_thread::yield();
  }

  server::rpc::CallRoom room{*admission, *telemetry, clock, 1};
};

}  // namespace sconce::test
