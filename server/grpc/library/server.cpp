// The library's only function: creates a gRPC server with the limits in the options.
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "server/grpc/library/calls.h"
#include "server/grpc/library/channelz.h"
#include "server/grpc/library/health.h"

namespace sconce::server::rpc {
namespace {

std::atomic<GrpcHost*> log_host{nullptr};

void write_log(gpr_log_func_args* line) {
  if (GrpcHost* const host = log_host.load()) host->log(line->severity == GPR_LOG_SEVERITY_ERROR, line->message);
}

int limited(uint64_t value) { return static_cast<int>(std::min<uint64_t>(value, INT_MAX)); }

std::shared_ptr<grpc::ServerCredentials> credentials_of(const GrpcOptions& options) {
  if (!options.tls) return grpc::InsecureServerCredentials();
  constexpr unsigned kLook = 1;  // seconds between polls of the files
  namespace tls = grpc::experimental;
  const auto provider =
      options.mutual ? std::make_shared<tls::FileWatcherCertificateProvider>(options.key, options.certificate,
                                                                             options.client_ca, kLook)
                     : std::make_shared<tls::FileWatcherCertificateProvider>(options.key, options.certificate, kLook);
  tls::TlsServerCredentialsOptions settings(provider);
  settings.watch_identity_key_cert_pairs();
  if (options.mutual) {
    settings.watch_root_certs();
    settings.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return tls::TlsServerCredentials(settings);
}

class Server final : public GrpcServer {
 public:
  Server(GrpcHost& host, const GrpcOptions& options) : options_(options), quota_("sconce") {
    log_host = &host;
    gpr_set_log_function(write_log);
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
    grpc::ServerBuilder builder;
    quota_.Resize(options.memory);
    builder.SetResourceQuota(quota_);
    builder.SetMaxReceiveMessageSize(limited(options.most_message));
    builder.SetMaxSendMessageSize(-1);
    const auto set = [&](const char* name, int value) { builder.AddChannelArgument(name, value); };
    set(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);  // gRPC's decompression has no limit
    set(GRPC_ARG_MAX_CONCURRENT_STREAMS, limited(static_cast<uint64_t>(options.streams)));
    set(GRPC_ARG_MAX_METADATA_SIZE, limited(options.most_header));
    set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, limited(static_cast<uint64_t>(options.handshake.count())));
    set(GRPC_ARG_MAX_CONNECTION_IDLE_MS, limited(static_cast<uint64_t>(options.idle.count())));
    if (options.age.count() > 0)
      set(GRPC_ARG_MAX_CONNECTION_AGE_MS, limited(static_cast<uint64_t>(options.age.count())));
    if (options.age_grace.count() > 0)
      set(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, limited(static_cast<uint64_t>(options.age_grace.count())));
    set(GRPC_ARG_ENABLE_CHANNELZ, 1);  // for connections() and traffic()
    // Detects a dead peer, and disconnects a peer that floods with pings.
    constexpr int kKeepalive = 60'000, kKeepaliveTimeout = 20'000, kMinPing = 5'000, kStrikes = 3;
    set(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepalive);
    set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeout);
    set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPing);
    set(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kStrikes);
    set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    queue_ = builder.AddCompletionQueue();
    calls_ = std::make_unique<Calls>(host, options_, health_, *queue_);
    // For a method of another kind, gRPC would start its own threads, which compete with this server's.
    builder.RegisterService(&calls_->service);
    builder.RegisterAsyncGenericService(&calls_->others);
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials_of(options));
    server_ = builder.BuildAndStart();
    if (!server_) return;
    channelz_ = std::make_unique<Channelz>();
    calls_->threads.start();
    calls_->open();
  }
  ~Server() override {
    stop(std::chrono::steady_clock::now());
    server_.reset();
    log_host = nullptr;
  }

  bool runs() const noexcept { return server_ != nullptr; }
  void serve(int descriptor) noexcept override {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = descriptor;
    // gRPC sets this option for sockets that it accepts itself. Without it, an answer in a stream waits up to 40 ms for
    // the acknowledgement of earlier data.
    const int on = 1;
    ::setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    acceptor_->HandleNewConnection(&connection);
  }
  void set_ready(bool ready) noexcept override { health_.set(ready); }
  void look() noexcept override { calls_->look(); }
  void connections(int64_t after, const std::function<void(int64_t, std::string_view)>& found) override {
    channelz_->connections(after, found);
  }
  bool traffic(int64_t number, GrpcTraffic& to) noexcept override { return channelz_->traffic(number, to); }
  void visit_calls(const std::function<void(const std::string&, bool)>& visit) override {
    calls_->visit([&](RpcCall& call) { visit(call.peer(), call.works()); });
  }
  uint64_t calls() const noexcept override { return static_cast<uint64_t>(calls_->under_way()); }
  void stop(std::chrono::steady_clock::time_point deadline) noexcept override {
    if (stopped_) return;
    stopped_ = true;
    calls_->close();
    health_.end();
    calls_->visit([](RpcCall& call) { call.drain(); });
    // Uses the steady clock, because the system clock may jump meanwhile.
    const auto left =
        std::max(deadline - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration::zero());
    const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    if (server_)
      server_->Shutdown(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(nanoseconds, GPR_TIMESPAN)));
    // A cancelled call may still wait for the program.
    while (!calls_->empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    queue_->Shutdown();
    calls_->threads.stop();
  }

 private:
  const GrpcOptions options_;
  grpc::ResourceQuota quota_;
  Health health_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<Calls> calls_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Channelz> channelz_;
  bool stopped_ = false;
};

}  // namespace
}  // namespace sconce::server::rpc

extern "C" [[gnu::visibility("default")]] sconce::server::rpc::GrpcServer* SCONCE_GRPC_OPEN(
    sconce::server::rpc::GrpcHost& host, const sconce::server::rpc::GrpcOptions& options, std::string& problem) {
  try {
    auto server = std::make_unique<sconce::server::rpc::Server>(host, options);
    if (server->runs()) return server.release();
    problem = "the server could not be built from its settings";
  } catch (const std::exception& e) {
    problem = e.what();
  }
  return nullptr;
}
