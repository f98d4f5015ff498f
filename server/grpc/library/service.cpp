#include "server/grpc/library/service.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <inference.grpc.pb.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "sconce/mutex.h"
#include "server/grpc/library/infer_message.h"
#include "server/grpc/library/methods.h"

namespace sconce::server {
namespace {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;

grpc::Status status_of(const GrpcStatus& status) {
  return {static_cast<grpc::StatusCode>(status.code), status.message};
}

// The compression of a message that gRPC left as it came.
class CompressionReader : public grpc::ProtoBufferReader {
 public:
  explicit CompressionReader(ByteBuffer& message) : ProtoBufferReader(&message) {}
  grpc_compression_algorithm algorithm() {
    return status().ok() && reader()->buffer_in->type == GRPC_BB_RAW ? reader()->buffer_in->data.raw.compression
                                                                     : GRPC_COMPRESS_NONE;
  }
};

grpc_compression_algorithm compression_of(ByteBuffer& message) {
  return message.Valid() ? CompressionReader(message).algorithm() : GRPC_COMPRESS_NONE;
}

bool inflate_if_compressed(ByteBuffer& message, size_t most, GrpcStatus& status) {
  const grpc_compression_algorithm algorithm = compression_of(message);
  return algorithm == GRPC_COMPRESS_NONE || inflate(message, algorithm, most, status);
}

// What the client says in the call's metadata.
GrpcCaller caller_of(const grpc::ServerContextBase& context) {
  GrpcCaller caller;
  const auto& metadata = context.client_metadata();
  const auto find = [&](const char* name) {
    const auto found = metadata.find(name);
    return found == metadata.end() ? std::string_view() : std::string_view(found->second.data(), found->second.size());
  };
  caller.authorization = find("authorization");
  caller.request_id = find("x-request-id");
  caller.traceparent = find("traceparent");
  caller.weights = find("sconce-weights");
  caller.affinity = find("sconce-affinity");
  const std::string peer = context.peer();  // "ipv4:192.0.2.7:50000", "ipv6:%5B::1%5D:50000"
  caller.peer = peer.substr(peer.find(':') + 1);
  for (const auto& [escaped, bracket] : {std::pair("%5B", "["), std::pair("%5D", "]")}) {
    if (const size_t at = caller.peer.find(escaped); at != std::string::npos) caller.peer.replace(at, 3, bracket);
  }
  const auto deadline = context.deadline();
  if (deadline != std::chrono::system_clock::time_point::max()) {
    const auto left = deadline - std::chrono::system_clock::now();
    caller.deadline = GrpcCaller::Clock::now() + std::chrono::duration_cast<GrpcCaller::Clock::duration>(left);
  }
  return caller;
}

// Ends a call from another thread, as long as gRPC has not ended it.
class CancelLater : public std::enable_shared_from_this<CancelLater> {
 public:
  explicit CancelLater(CallbackServerContext& context) : context_(&context) {}
  void cancel(GrpcHost& host) noexcept {
    host.lend([self = shared_from_this()] {
      const MutexLock lock(self->mutex_);
      // gRPC calls OnDone() on another thread, where it waits for this one.
      if (self->context_ != nullptr) self->context_->TryCancel();
    });
  }
  void done() {
    const MutexLock lock(mutex_);
    context_ = nullptr;
  }

 private:
  Mutex mutex_;
  CallbackServerContext* context_;
};

// Larger messages are read on a thread for long work: a millisecond of reading.
constexpr size_t kLongMessage = 8 * 1024 * 1024;
constexpr size_t kLongCompressed = 1024;

// One request for an inference, with what it views. Lives until its waiter and gRPC's sending have let go.
class Inference final : private GrpcWaiter, public std::enable_shared_from_this<Inference> {
 public:
  using Finished = std::function<void()>;  // the call is over, or has its answer; must not throw

  // handed: is called once the program has the request, or it is over; null: nobody wants to know. Must not throw.
  Inference(GrpcHost& host, const GrpcOptions& options, GrpcMethod method, std::shared_ptr<CancelLater> canceller,
            Finished finished, Finished handed = nullptr)
      : host_(host),
        options_(options),
        method_(method),
        canceller_(std::move(canceller)),
        finished_(std::move(finished)),
        handed_(std::move(handed)) {}
  ~Inference() {
    if (GrpcInference* const call = call_) call->release();
  }

  // Ends in Finished. False: there is not even memory to refuse it.
  bool start(const GrpcCaller& caller, ByteBuffer& message) {
    GrpcInference* const call = host_.inference();
    if (call == nullptr) return false;
    call_ = call;
    bytes_.Swap(&message);
    if (!call->admit(method_, caller, bytes_.Length(), *this)) {
      hand();
      return true;
    }
    if (bytes_.Length() > kLongMessage ||
        (bytes_.Length() > kLongCompressed && compression_of(bytes_) != GRPC_COMPRESS_NONE)) {
      host_.lend([self = shared_from_this()] {
        self->read();
        self->hand();
      });
    } else {
      read();
      hand();
    }
    return true;
  }
  void cancel() noexcept {
    if (GrpcInference* const call = call_) call->cancel();
  }
  void next() noexcept { call_.load()->next(); }
  // After Finished: whether another answer follows this one.
  bool more() const noexcept { return status().code == GrpcCode::kOk && !answer().last; }
  const GrpcStatus& status() const noexcept { return call_.load()->status(); }
  const TensorAnswer& answer() const noexcept { return call_.load()->answer(); }
  const std::string& id() const noexcept { return id_; }
  // False: there is no memory.
  bool respond(bool streamed, ByteBuffer& to) noexcept {
    try {
      ByteBuffer response = infer_response(answer(), shared_from_this(), message_.wants_final(), streamed);
      to.Swap(&response);
    } catch (const std::bad_alloc&) {
      return false;
    }
    call_.load()->sending(to.Length());
    return true;
  }

 private:
  void finished() noexcept override { finished_(); }
  void hand() noexcept {
    if (handed_) handed_();
  }
  void give_up() noexcept override { canceller_->cancel(host_); }
  void read() {
    GrpcInference& call = *call_;
    const GrpcStatus no_message{GrpcCode::kInvalidArgument, "not a ModelInferRequest"};
    try {
      GrpcStatus status;
      if (!inflate_if_compressed(bytes_, options_.most_inflated, status)) return call.refuse(std::move(status));
      const size_t bytes = bytes_.Length();
      if (!message_.scan(bytes_)) return call.refuse(no_message);
      if (!call.grow(bytes + message_.needs())) return;
      if (!message_.read()) return call.refuse(no_message);
      id_ = message_.request().id;
    } catch (const std::bad_alloc&) {
      return call.refuse({GrpcCode::kResourceExhausted, {}});
    }
    call.run(message_.request());
  }

  GrpcHost& host_;
  const GrpcOptions& options_;
  const GrpcMethod method_;
  const std::shared_ptr<CancelLater> canceller_;
  const Finished finished_, handed_;
  std::atomic<GrpcInference*> call_{nullptr};
  ByteBuffer bytes_;
  InferMessage message_;
  std::string id_;
};

const grpc::Status kNoMemory{grpc::RESOURCE_EXHAUSTED, "no memory"};

class InferReactor final : public grpc::ServerUnaryReactor {
 public:
  InferReactor(GrpcHost& host, const GrpcOptions& options, CallbackServerContext& context, ByteBuffer& request,
               ByteBuffer& response)
      : options_(options),
        context_(context),
        response_(response),
        canceller_(std::make_shared<CancelLater>(context)),
        inference_(
            std::make_shared<Inference>(host, options, GrpcMethod::kModelInfer, canceller_, [this] { finish(); })) {
    const std::shared_ptr<Inference> kept = inference_;  // the call may be over before start() returns
    if (!kept->start(caller_of(context), request)) Finish(kNoMemory);
  }

 private:
  void finish() noexcept {
    const GrpcStatus& status = inference_->status();
    if (status.code != GrpcCode::kOk) return Finish(status_of(status));
    const TensorAnswer& answer = inference_->answer();
    size_t bytes = 0;
    for (const TensorAnswer::Output& output : answer.outputs) bytes += output.bytes;
    // gRPC compresses only for clients that accept it.
    if (options_.compress_above > 0 && bytes > static_cast<size_t>(options_.compress_above))
      context_.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    context_.AddInitialMetadata("sconce-generation", std::to_string(answer.generation));
    if (!answer.weights.empty()) context_.AddInitialMetadata("sconce-weights", std::string(answer.weights));
    const bool has_answer = inference_->respond(false, response_);
    Finish(has_answer ? grpc::Status::OK : kNoMemory);
  }
  void OnCancel() override {
    const std::shared_ptr<Inference> kept = inference_;
    kept->cancel();
  }
  void OnDone() override {
    canceller_->done();
    delete this;
  }

  const GrpcOptions& options_;
  CallbackServerContext& context_;
  ByteBuffer& response_;
  const std::shared_ptr<CancelLater> canceller_;
  const std::shared_ptr<Inference> inference_;
};

// Requests of one stream run side by side, as many as the window; their answers leave in the order of the requests, but
// those of requests with several answers leave as they come: each is in the list of entries until its last one. The
// program gets one after the other, because steps of a sequence run in the order in which it gets them.
// gRPC calls none of the On...() within StartRead(), StartWrite() or Finish(), so these are called under the mutex.
class StreamReactor final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  StreamReactor(GrpcHost& host, const GrpcOptions& options, CallbackServerContext& context)
      : host_(host), options_(options), context_(context), canceller_(std::make_shared<CancelLater>(context)) {
    const auto asked = context.client_metadata().find("triton_grpc_error");
    errors_end_ = asked != context.client_metadata().end() && asked->second == "true";
    StartRead(&read_);
  }

 private:
  struct Entry {
    std::shared_ptr<Inference> inference;
    bool ready = false;      // has its answer, or failed
    bool no_memory = false;  // not even for its status
    bool several = false;    // has several answers
  };

  void OnReadDone(bool ok) override {
    std::shared_ptr<Entry> entry;
    {
      const MutexLock lock(mutex_);
      reading_ = false;
      if (ok && !cancelled_) {
        entry = std::make_shared<Entry>();
        entry->inference = std::make_shared<Inference>(
            host_, options_, GrpcMethod::kModelStreamInfer, canceller_, [this, of = entry.get()] { end(*of); },
            [this] { handed(); });
        entries_.push_back(entry);
        starting_ = true;
      } else {
        ended_ = true;
        go_on();
      }
    }
    if (!entry) return;
    const bool started = entry->inference->start(caller_of(context_), read_);
    bool cancelled = false;
    {
      const MutexLock lock(mutex_);
      cancelled = cancelled_;
    }
    if (cancelled) entry->inference->cancel();
    if (started) return;
    const MutexLock lock(mutex_);
    starting_ = false;
    entry->ready = entry->no_memory = true;
    go_on();
  }
  void OnWriteDone(bool ok) override {
    std::shared_ptr<Entry> over;
    bool more = false;
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      over = std::move(written_);
      more = ok && !cancelled_ && !over->no_memory && over->inference->more();
      entries_.erase(std::find(entries_.begin(), entries_.end(), over));
      if (more) {
        // Others with several answers have their turn.
        over->ready = false;
        entries_.push_back(over);
        holds_++;
      }
      if (!ok) ended_ = true;
      go_on();
    }
    if (!more) return;
    over->inference->next();
    bool cancelled = false;
    {
      const MutexLock lock(mutex_);
      cancelled = cancelled_;
    }
    if (cancelled) over->inference->cancel();
    const MutexLock lock(mutex_);
    holds_--;
    go_on();
  }
  void OnCancel() override {
    std::deque<std::shared_ptr<Entry>> all;
    {
      const MutexLock lock(mutex_);
      cancelled_ = true;
      all = entries_;
      holds_++;  // while this uses it, the stream does not end
    }
    for (const auto& entry : all) entry->inference->cancel();
    const MutexLock lock(mutex_);
    holds_--;
    go_on();
  }
  void OnDone() override {
    canceller_->done();
    { const MutexLock lock(mutex_); }  // whoever called Finish() has left
    delete this;
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
  // The first that may leave; null: none.
  std::shared_ptr<Entry> next_ready() const {
    bool in_turn = true;
    for (const auto& entry : entries_) {
      if (entry->ready && (in_turn || entry->several)) return entry;
      in_turn = in_turn && entry->several;
    }
    return nullptr;
  }

  // Under the mutex: reads the next request, writes the next answer, ends the stream, whichever can be.
  void go_on() {
    if (finished_) return;
    if (!writing_ && !cancelled_) {
      if ((written_ = next_ready())) write_next(*written_);
    }
    if (!ended_ && !cancelled_ && !reading_ && !starting_ &&
        entries_.size() < static_cast<size_t>(options_.stream_window)) {
      reading_ = true;
      StartRead(&read_);
    }
    if (writing_ || starting_ || holds_ > 0) return;
    const bool all_ready =
        std::all_of(entries_.begin(), entries_.end(), [](const auto& entry) { return entry->ready; });
    if (cancelled_ ? all_ready : ended_ && !reading_ && entries_.empty()) {
      finished_ = true;
      Finish(status_);
    }
  }
  void write_next(const Entry& entry) {
    static const GrpcStatus no_memory{GrpcCode::kResourceExhausted, "no memory"};
    const GrpcStatus* status = entry.no_memory ? &no_memory : &entry.inference->status();
    if (status->code == GrpcCode::kOk && !entry.inference->respond(true, write_)) status = &no_memory;
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
    StartWrite(&write_);
  }

  GrpcHost& host_;
  const GrpcOptions& options_;
  CallbackServerContext& context_;
  const std::shared_ptr<CancelLater> canceller_;
  bool errors_end_ = false;  // an error ends the stream with its status
  Mutex mutex_;
  ByteBuffer read_, write_;
  std::deque<std::shared_ptr<Entry>> entries_;
  std::shared_ptr<Entry> written_;  // whose answer is being written
  bool reading_ = true, writing_ = false, starting_ = false;
  int holds_ = 0;           // how many threads use the entries without the mutex
  bool ended_ = false;      // the client sends no more
  bool cancelled_ = false;  // no more answers are written
  bool finished_ = false;
  grpc::Status status_;
};

class TextReactor final : public grpc::ServerUnaryReactor {
 public:
  TextReactor(GrpcHost& host, const GrpcOptions& options, GrpcMethod method, CallbackServerContext& context,
              const ByteBuffer& request, ByteBuffer& response) {
    ByteBuffer message = request;
    GrpcStatus status;
    std::string json;
    const auto refuse = [&](GrpcStatus why) {
      host.count(method, why.code);
      Finish(status_of(why));
    };
    const bool too_large = message.Length() > options.most_text;
    if (too_large) {
      refuse({GrpcCode::kResourceExhausted, "the message is larger than this method takes"});
    } else if (!inflate_if_compressed(message, options.most_text, status)) {
      refuse(status);
    } else if (!request_to_json(method, message, json)) {
      refuse({GrpcCode::kInvalidArgument, "not the request of this method"});
    } else {
      ask(host, method, context, json, response);
    }
  }

 private:
  void ask(GrpcHost& host, GrpcMethod method, CallbackServerContext& context, const std::string& json,
           ByteBuffer& response) {
    host.answer(method, caller_of(context), json,
                [this, method, &response](const GrpcStatus& given, std::string_view text) {
                  if (given.code == GrpcCode::kOk && !answer_from_json(method, text, response))
                    return Finish({grpc::INTERNAL, "the answer has no message"});
                  Finish(status_of(given));
                });
  }
  void OnDone() override { delete this; }
};

// Methods get their messages as bytes, so that no message is decompressed or parsed before it is admitted.
template <class Base>
using Infer = inference::GRPCInferenceService::WithRawCallbackMethod_ModelInfer<Base>;
template <class Base>
using Stream = inference::GRPCInferenceService::WithRawCallbackMethod_ModelStreamInfer<Base>;
using Service0 = Infer<Stream<inference::GRPCInferenceService::Service>>;
#define RAW(name, base) inference::GRPCInferenceService::WithRawCallbackMethod_##name<base>
using Service1 = RAW(ServerLive, RAW(ServerReady, RAW(ModelReady, RAW(ServerMetadata, RAW(ModelMetadata, Service0)))));
using Service2 = RAW(ModelConfig,
                     RAW(ModelStatistics,
                         RAW(RepositoryIndex, RAW(RepositoryModelLoad, RAW(RepositoryModelUnload, Service1)))));
using Service3 = RAW(SystemSharedMemoryStatus,
                     RAW(SystemSharedMemoryRegister, RAW(SystemSharedMemoryUnregister, Service2)));
using Service4 = RAW(CudaSharedMemoryStatus, RAW(CudaSharedMemoryRegister, RAW(CudaSharedMemoryUnregister, Service3)));
using RawService = RAW(TraceSetting, RAW(LogSettings, Service4));
#undef RAW

class InferenceService final : public RawService {
 public:
  InferenceService(GrpcHost& host, const GrpcOptions& options) : host_(host), options_(options) {}

  grpc::ServerUnaryReactor* ModelInfer(CallbackServerContext* context, const ByteBuffer* request,
                                       ByteBuffer* response) override {
    return new InferReactor(host_, options_, *context, const_cast<ByteBuffer&>(*request), *response);
  }
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* ModelStreamInfer(CallbackServerContext* context) override {
    return new StreamReactor(host_, options_, *context);
  }
#define METHOD(name, method, path)                                                                                \
  grpc::ServerUnaryReactor* name(CallbackServerContext* context, const ByteBuffer* request, ByteBuffer* response) \
      override {                                                                                                  \
    return new TextReactor(host_, options_, GrpcMethod::k##name, *context, *request, *response);                  \
  }
#include "server/answers/methods.def"
#undef METHOD

 private:
  GrpcHost& host_;
  const GrpcOptions& options_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_service(GrpcHost& host, const GrpcOptions& options) {
  return std::make_unique<InferenceService>(host, options);
}

}  // namespace sconce::server
