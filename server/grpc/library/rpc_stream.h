// RpcStream: the requests of one ModelStreamInfer, and the order of their answers.
//
// Requests run in parallel, up to the window. Answers are sent in the order of the requests, except those of requests
// with several answers, which are sent as they come: such a request stays in the list of entries until its last answer.
// The program receives the requests one after the other, because steps of a sequence run in the order of receipt.
//
// Nothing here throws, because gRPC's events arrive here. Without memory for a step, the stream ends with
// RESOURCE_EXHAUSTED. Thread-safe.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <cstddef>
#include <list>
#include <memory>

#include "sconce/mutex.h"
#include "server/grpc/boundary.h"
#include "server/grpc/library/rpc_inference.h"

namespace sconce::server::rpc {

class RpcStream final {
 public:
  // The call of gRPC. read() and write() begin one operation, whose end the call reports to the stream.
  class Wire {
   public:
    // Counts a request. Returns false if there are too many calls; leave() follows in either case.
    virtual bool enter() noexcept = 0;
    virtual void leave() noexcept = 0;
    virtual GrpcCaller caller() = 0;  // std::bad_alloc
    // std::bad_alloc
    virtual std::shared_ptr<RpcInference> make_inference(RpcInference::Finished finished,
                                                         RpcInference::Finished handed) = 0;
    virtual void read(grpc::ByteBuffer& to) noexcept = 0;              // was_read() follows
    virtual void write(const grpc::ByteBuffer& message) noexcept = 0;  // was_written() follows
    virtual void finish(const grpc::Status& status) noexcept = 0;      // the last operation

   protected:
    ~Wire() = default;
  };

  // window: maximum number of requests in progress. wire: outlives the stream.
  RpcStream(Wire& wire, size_t window) noexcept : wire_(wire), window_(window) {}
  RpcStream(const RpcStream&) = delete;

  // errors_end: an error ends the stream with its status.
  void begin(bool errors_end) noexcept;
  void was_read(bool ok) noexcept;
  void was_written(bool ok) noexcept;
  // The client has disconnected.
  void cancel() noexcept;
  // Accepts no more requests. Those that have arrived are answered.
  void drain() noexcept;
  // Whether requests are in progress.
  bool works() noexcept;
  // Waits until the thread that called Wire::finish() has left.
  void wait_for_finisher() noexcept { const MutexLock lock(mutex_); }

 private:
  struct Entry {
    explicit Entry(Wire& wire) noexcept : wire(wire), entered(wire.enter()) {}
    ~Entry() { wire.leave(); }
    Entry(const Entry&) = delete;

    Wire& wire;
    const bool entered;
    std::shared_ptr<RpcInference> inference;
    bool ready = false;                   // has its answer, or failed
    const GrpcStatus* refused = nullptr;  // reason for which there is no inference
    bool several = false;                 // has several answers
    bool cancelled = false;
  };

  std::shared_ptr<Entry> take_request() SCONCE_REQUIRES(mutex_);
  void handed() noexcept SCONCE_EXCLUDES(mutex_);
  void ended(Entry& entry) noexcept SCONCE_EXCLUDES(mutex_);
  std::shared_ptr<Entry> next_ready() const noexcept SCONCE_REQUIRES(mutex_);
  void go_on() noexcept SCONCE_REQUIRES(mutex_);
  void write_next(const Entry& entry) SCONCE_REQUIRES(mutex_);
  void fail(GrpcCode problem) noexcept SCONCE_REQUIRES(mutex_);

  Wire& wire_;
  const size_t window_;
  grpc::ByteBuffer read_;  // by gRPC while reading_, then by was_read()
  Mutex mutex_;
  bool errors_end_ SCONCE_GUARDED_BY(mutex_) = false;
  grpc::ByteBuffer write_ SCONCE_GUARDED_BY(mutex_);
  std::list<std::shared_ptr<Entry>> entries_ SCONCE_GUARDED_BY(mutex_);
  std::shared_ptr<Entry> written_ SCONCE_GUARDED_BY(mutex_);  // the entry whose answer is being written
  bool reading_ SCONCE_GUARDED_BY(mutex_) = false, writing_ SCONCE_GUARDED_BY(mutex_) = false;
  bool starting_ SCONCE_GUARDED_BY(mutex_) = false;   // the program does not have the last request yet
  int users_ SCONCE_GUARDED_BY(mutex_) = 0;           // number of threads that use the entries without the mutex
  bool ended_ SCONCE_GUARDED_BY(mutex_) = false;      // no more requests are read
  bool draining_ SCONCE_GUARDED_BY(mutex_) = false;   // because of shutdown
  bool cancelled_ SCONCE_GUARDED_BY(mutex_) = false;  // no more answers are written
  bool finished_ SCONCE_GUARDED_BY(mutex_) = false;
  grpc::Status status_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::rpc
