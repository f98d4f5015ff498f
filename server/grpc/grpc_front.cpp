#include "server/grpc/grpc_front.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>

#include "sconce/check.h"
#include "server/grpc/grpc_document.h"
#include "server/http/connections/listening.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "server/support/memory/free_memory.h"
#include "src/support/excerpt.h"

namespace sconce::server::rpc {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr const char* kLibrary = "libsconcegrpc.so.0";
constexpr std::chrono::milliseconds kLook{250};     // interval of polling readiness and slow clients
constexpr std::chrono::milliseconds kBusyLook{50};  // interval of polling connections that send bytes
constexpr std::chrono::seconds kComplainEvery{10};
constexpr uint64_t kMaxStatusText = 64 * 1024;  // as BodyLimit::kText
constexpr int64_t kStreamWindow = 32;           // requests of one stream in progress

// First beside the program's libsconce, then by the dynamic linker's search.
OpenGrpcServer* open_library() {
  std::string problem;
  void* library = nullptr;
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&sconce::http_status), &info) != 0 && info.dli_fname != nullptr) {
    const std::string own = info.dli_fname;
    if (const size_t slash = own.rfind('/'); slash != std::string::npos) {
      library = dlopen((own.substr(0, slash + 1) + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) problem = dlerror();
    }
  }
  if (library == nullptr) library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr && problem.empty()) problem = dlerror();
  SCONCE_CHECK(library, kUnavailable, "setting grpc needs ", kLibrary, ", which cannot be opened: ", problem);
  const auto open = reinterpret_cast<OpenGrpcServer*>(dlsym(library, SCONCE_GRPC_OPEN_NAME));
  SCONCE_CHECK(open, kUnavailable, kLibrary, " is of another version: it has no ", SCONCE_GRPC_OPEN_NAME);
  return open;
}

GrpcOptions options_of(const api::Admission& admission) {
  const ServerConfig& config = admission.config;
  const auto milliseconds = [](std::chrono::microseconds time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time);
  };
  GrpcOptions options;
  options.most_message = static_cast<uint64_t>(config.max_body_bytes);
  options.most_inflated = static_cast<uint64_t>(config.max_inflated_bytes);
  options.most_text = kMaxStatusText;
  options.most_header = static_cast<uint64_t>(config.max_header_bytes);
  options.memory = admission.request_memory.limit();
  options.streams = config.grpc_streams;
  options.calls = config.grpc_calls;
  options.stream_window = std::min(kStreamWindow, config.grpc_streams);
  options.handshake =
      milliseconds(config.http_tls == TlsMode::kOff ? config.header_timeout : config.tls_handshake_timeout);
  options.idle = milliseconds(config.idle_timeout);
  options.age = milliseconds(config.grpc_max_connection_age);
  options.age_grace = milliseconds(config.grpc_max_connection_age_grace);
  options.busy_poll = config.busy_poll;
  options.compress_above = config.compress_above;
  options.tls = config.http_tls != TlsMode::kOff;
  options.mutual = config.http_tls == TlsMode::kMutual;
  options.certificate = config.tls_certificate;
  options.key = config.tls_key;
  options.client_ca = config.http_tls_client_ca.empty() ? config.tls_client_ca : config.http_tls_client_ca;
  return options;
}

ConnectionRecord::Limits limits_of(const ServerConfig& config) {
  return {config.grpc_empty_streams, static_cast<uint64_t>(config.max_body_bytes + config.max_header_bytes),
          Pace::of(config.body_timeout, config.min_rate)};
}

}  // namespace

GrpcFront::Descriptor::~Descriptor() { reset(-1); }

void GrpcFront::Descriptor::reset(int number) noexcept {
  if (number_ >= 0) ::close(number_);
  number_ = number;
}

GrpcFront::GrpcFront(api::Admission& admission, telemetry::Telemetry& telemetry, TimerQueue& clock, size_t first_place)
    : admission_(admission),
      telemetry_(telemetry),
      room_(admission, telemetry, clock, first_place),
      guard_(limits_of(admission.config), static_cast<uint64_t>(admission.config.grpc_streams), telemetry.calls,
             telemetry.refusals) {
  GrpcDocument::check_routes();
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  SCONCE_CHECK(wake_ >= 0, kIo, "no eventfd: ", std::strerror(errno));
  OpenGrpcServer* const open = open_library();
  listen(admission.config.grpc);
  std::string problem;
  server_.reset(open(*this, options_of(admission), problem));
  SCONCE_CHECK(server_, kUnavailable, "gRPC does not start: ", problem);
}

GrpcFront::~GrpcFront() {
  stop(Clock::now());
  if (stopper_.joinable()) stopper_.join();
  server_.reset();
  // A call may have ended while its run continues. That run still uses the room.
  while (!room_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void GrpcFront::listen(const Address& address) {
  asio::io_context context;
  tcp::acceptor acceptor(context);
  const tcp::endpoint endpoint = http::listen_on(acceptor, address);
  boost::system::error_code ec;
  listener_.reset(acceptor.release(ec));
  SCONCE_CHECK(!ec, kIo, "cannot listen on ", address.host, ":", address.port, ": ", ec.message());
  address_ = http::address_text(endpoint);
  loopback_ = http::is_loopback(endpoint);
}

void GrpcFront::start() {
  thread_ = std::thread([this] { run(); });
}

void GrpcFront::stop(Clock::time_point end) {
  if (stopping_.exchange(true)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
  stopper_ = std::thread([this, end] {
    if (thread_.joinable()) thread_.join();
    if (server_) server_->stop(end);
    stopped_.store(true, std::memory_order_release);
  });
}

void GrpcFront::run() noexcept {
  Clock::time_point next_look{}, next_guard{};
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (const Clock::time_point now = Clock::now(); now >= next_look) {
      look();
      next_look = now + kLook;
    }
    if (const Clock::time_point now = Clock::now(); now >= next_guard) {
      note_connections(guard_.look(*server_, now));
      // Many connections are polled less often, so that this takes at most a tenth of a core.
      const Clock::time_point end = Clock::now();
      next_guard = end + (guard_.is_busy() ? std::max<Clock::duration>(kBusyLook, 10 * (end - now)) : kLook);
    }
    const auto wait = static_cast<int>((guard_.is_busy() ? kBusyLook : kLook).count());
    pollfd both[] = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    if (::poll(both, 2, wait) <= 0 || (both[1].revents & POLLIN) == 0) continue;
    if (has_room() && accept_one()) continue;
    // A client waits for a free connection, or the process has run out of descriptors.
    guard_.make_room(*server_, Clock::now());
    ::poll(both, 1, static_cast<int>(kBusyLook.count()));
  }
  listener_.reset(-1);
}

// Returns false if descriptors or memory for a connection are short.
bool GrpcFront::accept_one() noexcept {
  const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor < 0) {
    const int why = errno;
    if (why != EMFILE && why != ENFILE && why != ENOBUFS && why != ENOMEM) return true;
    if (const Clock::time_point now = Clock::now(); now >= complain_again_) {
      complain_again_ = now + kComplainEvery;
      log_warn("gRPC connections wait to be accepted: {}", std::strerror(why));
    }
    return false;
  }
  if (!guard_.add(descriptor)) {
    ::close(descriptor);
    return true;
  }
  note_connections(0);
  server_->serve(descriptor);
  return true;
}

void GrpcFront::note_connections(size_t closed) noexcept {
  telemetry_.calls.connections.store(static_cast<int64_t>(guard_.size()), std::memory_order_relaxed);
  // Their buffers belonged to gRPC, so the end of a run does not free that memory.
  if (closed > 0) admission_.repository.leaves_memory();
}

// Whether one more connection may be open.
bool GrpcFront::has_room() noexcept {
  const auto most = static_cast<size_t>(std::max<int64_t>(admission_.config.max_connections, 1));
  if (guard_.size() < most) return true;
  note_connections(guard_.forget_closed());
  return guard_.size() < most;
}

void GrpcFront::look() noexcept {
  server_->look();
  succeeds([this] {
    const bool ready =
        !admission_.draining.load(std::memory_order_relaxed) && admission_.repository.snapshot()->is_ready();
    if (ready != ready_) server_->set_ready(ready_ = ready);
    room_.give_up_late(room_.now());
    room_.slots().drop_old_catalogs();
  });
}

std::shared_ptr<GrpcAnswering> GrpcFront::answer(api::GrpcMethod method, const GrpcCaller& caller,
                                                 std::string_view message, Done done) noexcept {
  std::shared_ptr<GrpcDocument> call;
  if (!succeeds([&] { call = std::make_shared<GrpcDocument>(room_, method, caller, done); })) {
    room_.count(method, GrpcCode::kResourceExhausted, {});
    done({GrpcCode::kResourceExhausted, {}}, {});
    return nullptr;
  }
  return call->start(caller.authorization, message) ? call : nullptr;
}

GrpcInference* GrpcFront::inference() noexcept {
  GrpcInference* call = nullptr;
  succeeds([&] { call = room_.take(); });
  return call;
}

void GrpcFront::lend(std::string_view peer, std::function<void()> work) noexcept {
  struct Lent {
    ThreadPool::Task task;
    std::function<void()> work;
  };
  Lent* lent = nullptr;
  const bool submitted = succeeds([&] {
    lent = new Lent{{}, {}};
    lent->work.swap(work);
    lent->task.context = lent;
    lent->task.work = [](void* context) noexcept {
      const std::unique_ptr<Lent> own(static_cast<Lent*>(context));
      own->work();
    };
    lent->task.client = ThreadPool::client_of(peer);
    admission_.heavy_work.submit(lent->task);
  });
  if (submitted) return;
  if (lent != nullptr) return lent->task.work(lent);
  work();
}

void GrpcFront::rest() noexcept { give_back_free_memory(); }

void GrpcFront::log(bool is_error, std::string_view text) noexcept {
  succeeds([&] {
    if (is_error) {
      log_warn(telemetry_.failures, "gRPC: {}", printable(text));
    } else {
      log_debug("gRPC: {}", printable(text));
    }
  });
}

}  // namespace sconce::server::rpc
