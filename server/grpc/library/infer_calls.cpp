#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "sconce/mutex.h"
#include "server/grpc/library/calls.h"
#include "server/grpc/library/infer_message.h"

namespace sconce::server {
namespace {

using grpc::ByteBuffer;

const GrpcStatus kDraining{GrpcCode::kUnavailable,
                           "the server ends, and takes no more requests of this stream: send them to another one"};
const GrpcStatus kNoMemoryStatus{GrpcCode::kResourceExhausted, "no memory"};

// Ends a call from another thread, if the call still exists.
class CancelLater : public std::enable_shared_from_this<CancelLater> {
 public:
  explicit CancelLater(grpc::ServerContext& context) : context_(&context) {}
  void cancel(GrpcHost& host) noexcept {
    host.lend({}, [self = shared_from_this()] {
      const MutexLock lock(self->mutex_);
      if (self->context_ != nullptr) self->context_->TryCancel();
    });
  }
  void done() {
    const MutexLock lock(mutex_);
    context_ = nullptr;
  }

 private:
  Mutex mutex_;
  grpc::ServerContext* context_;
};

// Larger messages are parsed on a thread for long work: about a millisecond of parsing.
constexpr size_t kLongMessage = 8 * 1024 * 1024;
constexpr size_t kLongCompressed = 1024;

// One inference request and the objects that it views. Lives until its waiter and gRPC's sending release it.
class RpcInference final : private GrpcWaiter, public std::enable_shared_from_this<RpcInference> {
 public:
  using Finished = std::function<void()>;  // the call has ended, or has its answer; must not throw

  // handed: called once the program has the request, or it has ended; may be null. Must not throw.
  RpcInference(Calls& calls, GrpcMethod method, std::shared_ptr<CancelLater> canceller, Finished finished,
               Finished handed = nullptr)
      : calls_(calls),
        method_(method),
        canceller_(std::move(canceller)),
        finished_(std::move(finished)),
        handed_(std::move(handed)) {}
  ~RpcInference() {
    if (GrpcInference* const call = call_) call->release();
  }

  // Calls Finished at the end. False: memory is too short even for a refusal, or there are too many calls.
  bool start(const GrpcCaller& caller, ByteBuffer& message) {
    const auto self = shared_from_this();
    GrpcInference* const call = calls_.host.inference();
    if (call == nullptr) return false;
    call_ = call;
    begin(*call, caller, message);
    // The client may have left before the program knew the call.
    if (cancelled_) call->cancel();
    return true;
  }
  void cancel() noexcept {
    cancelled_ = true;
    if (GrpcInference* const call = call_) call->cancel();
  }
  void next() noexcept {
    calls_.threads.waits(1);
    call_.load()->next();
  }
  // Call this after Finished. Whether another answer follows this one.
  bool more() const noexcept { return status().code == GrpcCode::kOk && !answer().last; }
  const GrpcStatus& status() const noexcept { return call_.load()->status(); }
  const TensorAnswer& answer() const noexcept { return call_.load()->answer(); }
  const std::string& id() const noexcept { return id_; }
  // False: no memory.
  bool respond(bool streamed, ByteBuffer& to) noexcept {
    if (!has_memory([&] {
          ByteBuffer response = infer_response(answer(), shared_from_this(), message_.wants_final(), streamed);
          to.Swap(&response);
        }))
      return false;
    call_.load()->sending(to.Length());
    return true;
  }

 private:
  void begin(GrpcInference& call, const GrpcCaller& caller, ByteBuffer& message) {
    bytes_.Swap(&message);
    calls_.threads.waits(1);
    if (!call.admit(method_, caller, held_bytes(bytes_), *this)) return hand();
    if (bytes_.Length() > kLongMessage ||
        (bytes_.Length() > kLongCompressed && compression_of(bytes_) != GRPC_COMPRESS_NONE)) {
      calls_.host.lend(caller.peer, [self = shared_from_this()] {
        self->read();
        self->hand();
      });
    } else {
      read();
      hand();
    }
  }
  void finished() noexcept override {
    calls_.threads.waits(-1);
    finished_();
  }
  void hand() noexcept {
    if (handed_) handed_();
  }
  void give_up() noexcept override { canceller_->cancel(calls_.host); }
  void read() {
    GrpcInference& call = *call_;
    bool runs = false;
    if (!has_memory([&] { runs = decode(call); })) return call.refuse({GrpcCode::kResourceExhausted, {}});
    if (runs) call.run(message_.request());
  }
  // Returns false if the call has its status.
  bool decode(GrpcInference& call) {
    if (const grpc_compression_algorithm algorithm = compression_of(bytes_); algorithm != GRPC_COMPRESS_NONE) {
      const size_t compressed = held_bytes(bytes_);
      GrpcStatus status;
      const Inflated inflated = inflate(
          bytes_, algorithm, calls_.options.most_inflated, [&](size_t bytes) { return call.grow(compressed + bytes); },
          status);
      if (inflated == Inflated::kRefused) call.refuse(std::move(status));
      if (inflated != Inflated::kDone) return false;
    }
    const auto refuse = [&] {
      call.refuse({GrpcCode::kInvalidArgument, message_.problem()});
      return false;
    };
    const size_t bytes = held_bytes(bytes_);
    if (!message_.scan(bytes_)) return refuse();
    if (!call.grow(bytes + message_.needs())) return false;
    if (!message_.read()) return refuse();
    id_ = message_.request().id;
    return true;
  }

  Calls& calls_;
  const GrpcMethod method_;
  const std::shared_ptr<CancelLater> canceller_;
  const Finished finished_, handed_;
  std::atomic<GrpcInference*> call_{nullptr};
  std::atomic<bool> cancelled_{false};
  ByteBuffer bytes_;
  InferMessage message_;
  std::string id_;
};

class InferCall final : public RpcCall {
 public:
  explicit InferCall(Calls& calls)
      : RpcCall(calls, Calls::kInfer),
        canceller_(std::make_shared<CancelLater>(context_)),
        inference_(std::make_shared<RpcInference>(calls, GrpcMethod::kModelInfer, canceller_, [this] { answer(); })) {
    context_.AsyncNotifyWhenDone(left_.tag());
    calls.service.request_infer(context_, request_, to_, calls.queue, came_.tag());
  }

 private:
  grpc::ServerContext& context() noexcept override { return context_; }
  void begin() override {
    if (!inference_->start(caller_of(context_), request_)) finish(kNoMemory);
  }
  void cancel() noexcept override { inference_->cancel(); }
  void over() noexcept override { canceller_->done(); }
  bool works() noexcept override { return true; }
  void finish(const grpc::Status& status) noexcept override { to_.FinishWithError(status, finished_.tag()); }
  void finished(bool) {}

  void answer() noexcept {
    const GrpcStatus& status = inference_->status();
    if (status.code != GrpcCode::kOk) return finish(status_of(status));
    const TensorAnswer& answer = inference_->answer();
    size_t bytes = 0;
    for (const TensorAnswer::Output& output : answer.outputs) bytes += output.bytes;
    const int64_t compress_above = calls_.options.compress_above;
    // gRPC compresses only for clients that accept it.
    if (compress_above > 0 && bytes > static_cast<size_t>(compress_above))
      context_.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    context_.AddInitialMetadata("sconce-generation", std::to_string(answer.generation));
    if (!answer.weights.empty()) context_.AddInitialMetadata("sconce-weights", std::string(answer.weights));
    ByteBuffer response;
    if (!inference_->respond(false, response)) return finish(kNoMemory);
    to_.Finish(response, grpc::Status::OK, finished_.tag());
  }

  grpc::ServerContext context_;
  grpc::ServerAsyncResponseWriter<ByteBuffer> to_{&context_};
  ByteBuffer request_;
  const std::shared_ptr<CancelLater> canceller_;
  const std::shared_ptr<RpcInference> inference_;
  Event<InferCall, &InferCall::finished> finished_{*this};
};

// Requests of one stream run in parallel, up to the window. Answers are sent in the order of the requests, except those
// of requests with several answers, which are sent as they come: such a request stays in the list of entries until its
// last answer. The program receives the requests one after the other, because steps of a sequence run in the order of
// receipt.
class StreamCall final : public RpcCall {
 public:
  explicit StreamCall(Calls& calls)
      : RpcCall(calls, Calls::kStream), canceller_(std::make_shared<CancelLater>(context_)) {
    context_.AsyncNotifyWhenDone(left_.tag());
    calls.service.request_stream(context_, to_, calls.queue, came_.tag());
  }

 private:
  struct Entry {
    explicit Entry(Calls& calls) : calls(calls), entered(calls.enter()) {}
    ~Entry() { calls.leave(); }
    Entry(const Entry&) = delete;

    Calls& calls;
    const bool entered;
    std::shared_ptr<RpcInference> inference;
    bool ready = false;                   // has its answer, or failed
    const GrpcStatus* refused = nullptr;  // reason for which there is no inference
    bool several = false;                 // has several answers
  };

  grpc::ServerContext& context() noexcept override { return context_; }
  void begin() override {
    const auto asked = context_.client_metadata().find("triton_grpc_error");
    errors_end_ = asked != context_.client_metadata().end() && asked->second == "true";
    const MutexLock lock(mutex_);
    go_on();
  }
  void finish(const grpc::Status& status) noexcept override { to_.Finish(status, finished_event_.tag()); }
  void finished(bool) {}
  void was_read(bool ok) {
    std::shared_ptr<Entry> entry;
    {
      const MutexLock lock(mutex_);
      reading_ = false;
      if (ok && !cancelled_ && !draining_) {
        entry = std::make_shared<Entry>(calls_);
        entry->inference = std::make_shared<RpcInference>(
            calls_, GrpcMethod::kModelStreamInfer, canceller_, [this, of = entry.get()] { end(*of); },
            [this] { handed(); });
        entries_.push_back(entry);
        starting_ = true;
      } else {
        ended_ = true;
        go_on();
      }
    }
    if (!entry) return;
    if (entry->entered && entry->inference->start(caller_of(context_), read_)) return;
    const MutexLock lock(mutex_);
    starting_ = false;
    entry->ready = true;
    entry->refused = entry->entered ? &kNoMemoryStatus : &kTooManyCalls;
    go_on();
  }
  void was_written(bool ok) {
    std::shared_ptr<Entry> over;
    bool more = false;
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      over = std::move(written_);
      more = ok && !cancelled_ && over->refused == nullptr && over->inference->more();
      entries_.erase(std::find(entries_.begin(), entries_.end(), over));
      if (more) {
        // Other requests with several answers are served first.
        over->ready = false;
        entries_.push_back(over);
        users_++;
      }
      if (!ok) ended_ = true;
      go_on();
    }
    if (!more) return;
    over->inference->next();
    const MutexLock lock(mutex_);
    users_--;
    go_on();
  }
  void cancel() noexcept override {
    std::deque<std::shared_ptr<Entry>> all;
    {
      const MutexLock lock(mutex_);
      cancelled_ = true;
      all = entries_;
      users_++;  // while this is not 0, the stream does not end
    }
    for (const auto& entry : all) entry->inference->cancel();
    const MutexLock lock(mutex_);
    users_--;
    go_on();
  }
  void over() noexcept override {
    canceller_->done();
    { const MutexLock lock(mutex_); }  // the thread that called finish() has left
  }
  bool works() noexcept override {
    const MutexLock lock(mutex_);
    return !entries_.empty();
  }
  // Requests that have arrived are answered.
  void drain() noexcept override {
    const MutexLock lock(mutex_);
    if (ended_ || cancelled_ || draining_) return;
    ended_ = draining_ = true;
    status_ = status_of(kDraining);
    go_on();
  }

  void handed() noexcept {
    const MutexLock lock(mutex_);
    starting_ = false;
    go_on();
  }
  void end(Entry& entry) noexcept {
    const MutexLock lock(mutex_);
    entry.ready = true;
    entry.several = entry.several || entry.inference->more();
    go_on();
  }
  // The first entry whose answer may be sent; null: none.
  std::shared_ptr<Entry> next_ready() const {
    bool in_turn = true;
    for (const auto& entry : entries_) {
      if (entry->ready && (in_turn || entry->several)) return entry;
      in_turn = in_turn && entry->several;
    }
    return nullptr;
  }

  // Under the mutex. Reads the next request, writes the next answer, or ends the stream, whichever is possible.
  void go_on() {
    if (finished_) return;
    if (!writing_ && !cancelled_) {
      if ((written_ = next_ready())) write_next(*written_);
    }
    if (!ended_ && !cancelled_ && !reading_ && !starting_ &&
        entries_.size() < static_cast<size_t>(calls_.options.stream_window)) {
      reading_ = true;
      hold();
      to_.Read(&read_, read_event_.tag());
    }
    if (writing_ || starting_ || users_ > 0) return;
    const bool all_ready =
        std::all_of(entries_.begin(), entries_.end(), [](const auto& entry) { return entry->ready; });
    // gRPC then ends a read in progress.
    if (cancelled_ ? all_ready : ended_ && (draining_ || !reading_) && entries_.empty()) {
      finished_ = true;
      finish(status_);
    }
  }
  void write_next(const Entry& entry) {
    const GrpcStatus* status = entry.refused != nullptr ? entry.refused : &entry.inference->status();
    if (status->code == GrpcCode::kOk && !entry.inference->respond(true, write_)) status = &kNoMemoryStatus;
    if (status->code != GrpcCode::kOk) {
      if (errors_end_) {
        status_ = status_of(*status);
        cancelled_ = true;
        return;
      }
      ByteBuffer answer = stream_error(entry.inference->id(), status->message);
      write_.Swap(&answer);
    }
    writing_ = true;
    hold();
    to_.Write(write_, written_event_.tag());
  }

  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<ByteBuffer, ByteBuffer> to_{&context_};
  Event<StreamCall, &StreamCall::was_read> read_event_{*this};
  Event<StreamCall, &StreamCall::was_written> written_event_{*this};
  Event<StreamCall, &StreamCall::finished> finished_event_{*this};
  const std::shared_ptr<CancelLater> canceller_;
  bool errors_end_ = false;  // an error ends the stream with its status
  Mutex mutex_;
  ByteBuffer read_, write_;
  std::deque<std::shared_ptr<Entry>> entries_;
  std::shared_ptr<Entry> written_;  // the entry whose answer is being written
  bool reading_ = false, writing_ = false, starting_ = false;
  int users_ = 0;           // number of threads that use the entries without the mutex
  bool ended_ = false;      // no more requests are read
  bool draining_ = false;   // because of shutdown
  bool cancelled_ = false;  // no more answers are written
  bool finished_ = false;
  grpc::Status status_;
};

}  // namespace

void wait_for_infer(Calls& calls) { new InferCall(calls); }
void wait_for_stream(Calls& calls) { new StreamCall(calls); }

}  // namespace sconce::server
