// What gRPC's library for C++ allows: a server of its callback interface that answers each ModelInfer and each message
// of a ModelStreamInfer with the same bytes, without looking at what it was asked. The anchor of grpc_peers.py.
//
// usage: grpc_bare_server ADDRESS ANSWER_FILE STREAM_ANSWER_FILE
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <inference.grpc.pb.h>

#include "tests/bench/http/connection.h"

namespace {

using grpc::ByteBuffer;
using inference::GRPCInferenceService;

ByteBuffer buffer_of(const char* path) {
  const grpc::Slice slice(sconce::bench::content_of(path));
  return {&slice, 1};
}

class StreamReactor final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  explicit StreamReactor(const ByteBuffer& answer) : answer_(answer) { StartRead(&question_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    written_ = answer_;
    StartWrite(&written_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&question_);
  }
  void OnDone() override { delete this; }

 private:
  const ByteBuffer& answer_;
  ByteBuffer question_, written_;
};

using Raw = GRPCInferenceService::WithRawCallbackMethod_ModelInfer<
    GRPCInferenceService::WithRawCallbackMethod_ModelStreamInfer<GRPCInferenceService::Service>>;

class Service final : public Raw {
 public:
  Service(const char* answer, const char* stream_answer)
      : answer_(buffer_of(answer)), stream_answer_(buffer_of(stream_answer)) {}
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context, const ByteBuffer*,
                                       ByteBuffer* response) override {
    *response = answer_;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* ModelStreamInfer(grpc::CallbackServerContext*) override {
    return new StreamReactor(stream_answer_);
  }

 private:
  const ByteBuffer answer_, stream_answer_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  Service service(argv[2], argv[3]);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) return 1;
  server->Wait();
  return 0;
}
