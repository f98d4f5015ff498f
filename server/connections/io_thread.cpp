#include "server/connections/io_thread.h"

#include <sched.h>

#include <algorithm>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <ctime>
#include <limits>
#include <new>
#include <utility>

#include "sconce/check.h"
#include "server/base/failure.h"
#include "server/base/log.h"
#include "server/connections/listener.h"
#include "server/connections/session.h"
#include "server/memory/free_memory.h"

namespace sconce::server {
namespace {

namespace asio = boost::asio;

// Of what was never read, so that the next reader reads it.
constexpr uint64_t kNoRevision = std::numeric_limits<uint64_t>::max();
// How often deadlines are checked. While models' requests have deadlines, it is the shorter one.
constexpr std::chrono::milliseconds kTick{100}, kPrecision{1};

// Gives asio the I/O thread's own memory for the handler that passes on notices. There is one at a time, and it must
// not fail.
template <class T>
struct NoticeAllocator {
  using value_type = T;
  explicit NoticeAllocator(std::byte* memory) noexcept : memory(memory) {}
  template <class U>
  NoticeAllocator(const NoticeAllocator<U>& other) noexcept : memory(other.memory) {}
  T* allocate(size_t n) {
    if (n * sizeof(T) > 128) throw std::bad_alloc();
    return reinterpret_cast<T*>(memory);
  }
  void deallocate(T*, size_t) noexcept {}
  template <class U>
  bool operator==(const NoticeAllocator<U>& other) const noexcept {
    return memory == other.memory;
  }
  std::byte* memory;
};

std::chrono::nanoseconds busy_poll_of(const Service& service) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // On a single core, polling keeps others from producing work.
  const bool alone = sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) < 2;
  return alone ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(service.config.busy_poll);
}

}  // namespace

IoThread::IoThread(Service& service, size_t index)
    : service_(service),
      index_(index),
      guard_(asio::make_work_guard(context_)),
      timer_(context_),
      busy_poll_(busy_poll_of(service)) {
  update_date();
}

IoThread::~IoThread() { stop(); }

void IoThread::start() {
  tick();
  thread_ = std::thread([this] { run(); });
}

// If memory runs out, only one connection fails; the loop goes on.
void IoThread::run() {
  while (!context_.stopped()) {
    if (sleeps_ && succeeds([this] { turn(); })) continue;
    if (!sleeps_) succeeds([this] { sleep_until(Clock::now() + kTick); });
    if (!sleeps_) std::this_thread::sleep_for(kTick);
  }
}

void IoThread::turn() {
  // While a request waits for a lane, this I/O thread blocks, so that the lane has its core.
  if (lane_requests_ != 0 || !busy_poll_.pays()) {
    if (context_.run_one() != 0) busy_poll_.came(Clock::now());
  } else if (context_.poll_one() != 0) {
    busy_poll_.came(Clock::now());
  } else if (busy_poll_.again(Clock::now())) {
    std::this_thread::yield();
  }
}

void IoThread::stop() {
  if (!thread_.joinable()) return;
  context_.stop();
  thread_.join();
  // Wait until no other thread uses a connection's memory.
  for (bool running = true; running;) {
    pass_on_notices();
    running = false;
    for (auto it = sessions_.begin(); it != sessions_.end();) running |= (*it++)->abandon();
    if (running) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void IoThread::serve(Accepted accepted) {
  asio::post(context_, [this, accepted = std::move(accepted)]() mutable {
    std::string peer;
    const std::string problem = problem_of([&] {
      peer = accepted.peer();
      begin(accepted, peer);
    });
    if (!problem.empty())
      log_warn(service_.failures, "the connection of {} is closed, it cannot be served: {}", peer, problem);
  });
}

void IoThread::begin(Accepted& accepted, const std::string& peer) {
  end_rest();
  asio::ip::tcp::socket socket(context_);
  boost::system::error_code ec;
  socket.assign(accepted.v6() ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), accepted.descriptor(), ec);
  SCONCE_CHECK(!ec, kUnavailable, ec.message());
  accepted.give_away();
  sessions_.push_front(
      std::make_unique<Session>(*this, std::move(socket), accepted.listener(), accepted.take_slot(), peer));
  ConnectionCounters::add(counters().accepted, 1);
  sessions_.front()->start(sessions_.begin());
}

Session* IoThread::find_idlest(Listeners listener, Idle& idle) const noexcept {
  Session* found = nullptr;
  const Clock::time_point now = Clock::now();
  for (const auto& session : sessions_) {
    if (session->listener() != listener) continue;
    const Idle one = session->idle(now);
    if (!one.before(idle)) continue;
    idle = one;
    found = session.get();
  }
  return found;
}

IoThread::Idle IoThread::idlest(Listeners listener) const noexcept {
  Idle idle;
  find_idlest(listener, idle);
  return idle;
}

void IoThread::close_idlest(Listeners listener) noexcept {
  for (;;) {
    Idle idle;
    Session* const session = find_idlest(listener, idle);
    if (session == nullptr || session->make_room()) return;
  }
}

void IoThread::close_idle() {
  asio::post(context_, [this] {
    const Clock::time_point now = Clock::now();
    for (auto it = sessions_.begin(); it != sessions_.end();) (*it++)->close_if_idle(now);
  });
}

void IoThread::end_clients(bool tell) {
  asio::post(context_, [this, tell] {
    for (auto it = sessions_.begin(); it != sessions_.end();) (*it++)->end_client(tell);
  });
}

const Catalog& IoThread::catalog() {
  const uint64_t generation = service_.repository.revision();
  if (generation != catalog_revision_) {
    catalog_ = service_.repository.snapshot();
    catalog_revision_ = generation;
  }
  return *catalog_;
}

const CredentialSet& IoThread::credentials() {
  const uint64_t generation = service_.credentials.revision();
  if (generation != credentials_revision_) {
    credentials_ = service_.credentials.snapshot();
    credentials_revision_ = generation;
  }
  return *credentials_;
}

const TlsContext* IoThread::tls_of(Listeners listener) { return credentials().tls(listener); }

void IoThread::retire(Sessions::iterator session) noexcept {
  retired_.splice(retired_.begin(), sessions_, session);
  ConnectionCounters::add(counters().closed, 1);
  retired_.front()->leave();
}

void IoThread::notify(Session& session) noexcept {
  Session* head = noticed_.load(std::memory_order_relaxed);
  do session.next_notice_ = head;
  while (!noticed_.compare_exchange_weak(head, &session, std::memory_order_release, std::memory_order_relaxed));
  // The handler's memory is freed before it runs, so before the list is empty again.
  if (!head) {
    asio::post(context_,
               asio::bind_allocator(NoticeAllocator<std::byte>(notice_memory_.data()), [this] { pass_on_notices(); }));
  }
}

void IoThread::pass_on_notices() noexcept {
  Session* newest = noticed_.exchange(nullptr, std::memory_order_acquire);
  Session* oldest = nullptr;
  while (newest) {
    Session* const next = std::exchange(newest->next_notice_, oldest);
    oldest = std::exchange(newest, next);
  }
  while (oldest) {
    Session& session = *oldest;
    oldest = session.next_notice_;
    session.on_notice();
  }
}

void IoThread::tick() {
  retired_.clear();
  update_date();
  catalog();  // an I/O thread with idle connections keeps no old models
  const Clock::time_point now = Clock::now();
  Clock::time_point next = now + kTick;
  wakes_at_ = now;  // until all deadlines are known
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    Session& session = **it++;
    session.check_deadline(now);
    next = std::min(next, session.run_deadline());
  }
  report_held(service_.refusals, "refused requests");
  report_held(service_.failures, "failed requests");
  for (Listener* listener : watched_) listener->look();
  if (std::exchange(freed_much_, false)) give_back_free_memory();
  if (nothing_to_do()) return rest();
  sleep_until(std::max(next, now + kPrecision));
}

bool IoThread::nothing_to_do() const noexcept {
  return sessions_.empty() && retired_.empty() && !service_.refusals.holds() && !service_.failures.holds() &&
         std::all_of(watched_.begin(), watched_.end(), [](const Listener* one) { return one->needs_no_look(); });
}

void IoThread::end_rest() {
  if (!std::exchange(rests_, false)) return;
  update_date();
  sleep_until(Clock::now() + kTick);
}

// An idle server does not wake a core. A resting thread keeps no models and credentials, which may be replaced
// meanwhile.
void IoThread::rest() noexcept {
  catalog_.reset();
  catalog_revision_ = kNoRevision;
  credentials_.reset();
  credentials_revision_ = kNoRevision;
  rests_ = sleeps_ = true;
}

void IoThread::wake_by(Clock::time_point time) noexcept {
  if (time < wakes_at_) succeeds([&] { sleep_until(time); });
}

void IoThread::sleep_until(Clock::time_point time) {
  wakes_at_ = time;
  sleeps_ = false;
  timer_.expires_at(time);
  timer_.async_wait([this](const boost::system::error_code& ec) {
    if (ec) return;
    sleeps_ = false;
    tick();
  });
  sleeps_ = true;
}

void IoThread::update_date() {
  const std::time_t now = std::time(nullptr);
  if (std::chrono::seconds(now) == date_second_) return;
  date_second_ = std::chrono::seconds(now);
  std::tm utc{};
  gmtime_r(&now, &utc);
  // strftime would use the locale's names of days and months.
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::snprintf(date_, sizeof date_, "%s, %02u %s %04u %02u:%02u:%02u GMT", kDays[utc.tm_wday % 7],
                static_cast<unsigned>(utc.tm_mday) % 100, kMonths[utc.tm_mon % 12],
                static_cast<unsigned>(utc.tm_year + 1900) % 10000, static_cast<unsigned>(utc.tm_hour) % 100,
                static_cast<unsigned>(utc.tm_min) % 100, static_cast<unsigned>(utc.tm_sec) % 100);
}

}  // namespace sconce::server
