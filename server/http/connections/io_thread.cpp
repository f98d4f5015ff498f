#include "server/http/connections/io_thread.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

#include "server/http/connections/http_connection.h"
#include "server/http/connections/listener.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "server/support/memory/free_memory.h"

namespace sconce::server::http {
namespace {

// Intervals of checking deadlines. While models' requests have deadlines, the shorter one applies.
constexpr std::chrono::milliseconds kTick{100}, kPrecision{1};

// Answers are sent when there are this many, or earlier if the first has waited too long.
constexpr size_t kTogether = 16;
constexpr std::chrono::microseconds kWait{50};

std::chrono::nanoseconds busy_poll_of(const ServerConfig& config) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // On a single core, polling prevents other threads from producing work.
  const bool alone = sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) < 2;
  return alone ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(config.busy_poll);
}

}  // namespace

IoThread::IoThread(const HttpShared& shared, size_t index)
    : shared_(shared), index_(index), busy_poll_(busy_poll_of(shared.config)) {
  update_date();
}

IoThread::~IoThread() { stop(); }

void IoThread::start() {
  tick();
  thread_ = std::thread([this] { run(); });
}

// If memory is short, only one connection fails; the loop continues.
void IoThread::run() {
  now_ = shared_.now();
  while (!ends_.load(std::memory_order_relaxed))
    if (!succeeds([this] { run_once(); })) wakes_at_ = shared_.now() + kTick;
}

void IoThread::run_once() {
  // While a request is at a replica thread, this I/O thread blocks, so that the replica thread gets the core.
  const bool polls = lane_requests_ == 0 && busy_poll_.pays();
  size_t came = again_.size() + answers_.size();
  const auto events = loop_.wait(polls || came != 0 ? now_ : wakes_at_, now_);
  came += events.size();
  for (const EventLoop::Event& event : events) {
    event.watcher->ready(event.events);
    if (enough_answers()) send_answers();
  }
  came += pass_on_notices();
  going_on_.swap(again_);
  for (HttpConnection* const connection : going_on_) {
    connection->go_on();
    if (enough_answers()) send_answers();
  }
  going_on_.clear();
  loop_.do_work();
  send_answers();
  now_ = shared_.now();
  if (came != 0) {
    busy_poll_.came(now_, came);
  } else if (polls && busy_poll_.again(now_)) {
    std::this_thread::yield();
  }
  if (now_ < wakes_at_) return;
  tick();
  send_answers();
}

bool IoThread::sends_now(HttpConnection& connection, Clock::time_point began, Clock::time_point ready) noexcept {
  if (sending_) return true;
  if (!passing_on_) long_runs_ = ready - began >= kWait;
  if (answers_.empty()) oldest_answer_ = ready;
  newest_answer_ = ready;
  answers_.push_back(&connection);
  return false;
}

bool IoThread::enough_answers() const noexcept {
  if (answers_.empty()) return false;
  return answers_.size() >= kTogether || newest_answer_ - oldest_answer_ >= kWait || (long_runs_ && !passing_on_);
}

void IoThread::send_answers() noexcept {
  sending_ = true;
  for (HttpConnection* const connection : answers_) connection->send_answer();
  answers_.clear();
  sending_ = false;
}

void IoThread::stop() {
  if (thread_.joinable()) {
    ends_ = true;
    loop_.wake();
    thread_.join();
  }
  // Waits until no other thread uses a connection's memory.
  for (bool running = true; running;) {
    pass_on_notices();
    send_answers();
    running = false;
    for (auto it = connections_.begin(); it != connections_.end();) running |= (*it++)->abandon();
    if (running) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  again_.clear();
  answers_.clear();
  connections_.clear();
  retired_.clear();
}

void IoThread::serve(Accepted accepted) {
  loop_.call([this, accepted = std::make_shared<Accepted>(std::move(accepted))] {
    std::string peer;
    const std::string problem = problem_of([&] {
      peer = accepted->peer();
      begin(*accepted, peer);
    });
    if (!problem.empty())
      log_warn(shared_.failures, "the connection of {} is closed, it cannot be served: {}", peer, problem);
  });
}

void IoThread::begin(Accepted& accepted, const std::string& peer) {
  end_rest();
  const size_t connections = connections_.size() + 1;
  for (std::vector<HttpConnection*>* const list : {&again_, &going_on_, &answers_})
    if (list->capacity() < connections) list->reserve(2 * connections);
  connections_.push_front(
      std::make_unique<HttpConnection>(*this, accepted.take_socket(), accepted.listener(), accepted.take_slot(), peer));
  ConnectionCounters::add(counters().accepted, 1);
  connections_.front()->start(connections_.begin());
}

HttpConnection* IoThread::find_idlest(Listeners listener, Idle& idle) const noexcept {
  HttpConnection* found = nullptr;
  const Clock::time_point now = shared_.now();
  for (const auto& connection : connections_) {
    if (connection->listener() != listener) continue;
    const Idle one = connection->idle(now);
    if (!one.before(idle)) continue;
    idle = one;
    found = connection.get();
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
    HttpConnection* const connection = find_idlest(listener, idle);
    if (connection == nullptr || connection->make_room()) return;
  }
}

void IoThread::close_idle() {
  loop_.call([this] {
    const Clock::time_point now = shared_.now();
    for (auto it = connections_.begin(); it != connections_.end();) (*it++)->close_if_idle(now);
  });
}

void IoThread::end_clients(bool tell) {
  loop_.call([this, tell] {
    for (auto it = connections_.begin(); it != connections_.end();) (*it++)->end_client(tell);
  });
}

const CredentialSet& IoThread::credentials() { return credentials_.of(shared_.credentials); }

const TlsContext* IoThread::tls_of(Listeners listener) { return credentials().tls(listener); }

void IoThread::retire(Connections::iterator connection) noexcept {
  std::erase(again_, connection->get());
  retired_.splice(retired_.begin(), connections_, connection);
  ConnectionCounters::add(counters().closed, 1);
  retired_.front()->leave();
}

void IoThread::notify(HttpConnection& connection) noexcept {
  HttpConnection* head = noticed_.load(std::memory_order_relaxed);
  do connection.next_notice_ = head;
  while (!noticed_.compare_exchange_weak(head, &connection, std::memory_order_release, std::memory_order_relaxed));
  if (!head) loop_.wake();
}

size_t IoThread::pass_on_notices() noexcept {
  if (noticed_.load(std::memory_order_relaxed) == nullptr) return 0;
  HttpConnection* newest = noticed_.exchange(nullptr, std::memory_order_acquire);
  HttpConnection* oldest = nullptr;
  while (newest) {
    HttpConnection* const next = std::exchange(newest->next_notice_, oldest);
    oldest = std::exchange(newest, next);
  }
  size_t count = 0;
  passing_on_ = true;
  for (; oldest; ++count) {
    HttpConnection& connection = *oldest;
    oldest = connection.next_notice_;
    connection.on_notice();
    if (enough_answers()) send_answers();
  }
  passing_on_ = false;
  return count;
}

void IoThread::tick() {
  retired_.clear();
  update_date();
  handler_->tick();
  const Clock::time_point now = shared_.now();
  Clock::time_point next = now + kTick;
  wakes_at_ = Clock::time_point::min();  // until all deadlines are known
  for (auto it = connections_.begin(); it != connections_.end();) {
    HttpConnection& connection = **it++;
    connection.check_deadline(now);
    next = std::min(next, connection.run_deadline());
  }
  report_held(shared_.refusals, "refused requests");
  report_held(shared_.failures, "failed requests");
  for (Listener* listener : watched_) listener->look();
  if (std::exchange(freed_much_, false)) give_back_free_memory();
  if (nothing_to_do()) return rest();
  wakes_at_ = std::max(next, now + kPrecision);
}

bool IoThread::nothing_to_do() const noexcept {
  return connections_.empty() && retired_.empty() && !shared_.refusals.holds() && !shared_.failures.holds() &&
         std::all_of(watched_.begin(), watched_.end(), [](const Listener* one) { return one->needs_no_look(); });
}

void IoThread::end_rest() noexcept {
  if (!std::exchange(rests_, false)) return;
  update_date();
  wakes_at_ = shared_.now() + kTick;
}

// An idle server must not wake a core. A resting thread drops its credentials, which may be replaced meanwhile.
void IoThread::rest() noexcept {
  handler_->rest();
  credentials_.drop();
  rests_ = true;
  wakes_at_ = Clock::time_point::max();
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

}  // namespace sconce::server::http
