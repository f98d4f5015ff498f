// `sconce top`: shows a server's activity, in a terminal or as lines.
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

#include "sconce/check.h"
#include "server/cli/command.h"
#include "server/cli/top/event_stream.h"
#include "server/cli/top/screen.h"
#include "server/http/client/admin_client.h"
#include "server/support/log.h"
#include "server/support/terminal/text.h"

namespace sconce::server::cli {
namespace {

struct TopOptions {
  std::string url = "http://127.0.0.1:8003", token_file, ca, certificate, key;
  bool once = false, json = false;
  double interval_s = 1;
};

constexpr char kTarget[] = "/v2/admin/live";
// Events come every second, so a server that is silent for this long is considered unreachable.
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::seconds kTryAgain{1};
constexpr std::chrono::milliseconds kLook{50};
// Events come slightly earlier or later than one second after the previous one.
constexpr double kEarly = 0.2;

std::atomic<bool> ended{false}, resized{false};

// The terminal's alternate screen with unbuffered keys. The destructor restores the terminal.
class DrawnScreen {
 public:
  DrawnScreen() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, [](int) { ended = true; });
    std::signal(SIGWINCH, [](int) { resized = true; });
    has_keys_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (has_keys_) {
      termios keys = before_;
      keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    std::cout << "\x1b[?1049h\x1b[?25l" << std::flush;
  }
  ~DrawnScreen() {
    std::cout << "\x1b[?25h\x1b[?1049l" << std::flush;
    if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  DrawnScreen(const DrawnScreen&) = delete;
  DrawnScreen& operator=(const DrawnScreen&) = delete;

  static ScreenSize size() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
    return {size.ws_col, size.ws_row};
  }

  static void draw(const std::vector<std::string>& lines) {
    std::string text = "\x1b[H";
    for (size_t i = 0; i < lines.size(); ++i) text += lines[i] + "\x1b[K" + (i + 1 < lines.size() ? "\r\n" : "");
    std::cout << text << "\x1b[J" << std::flush;
  }

  // Whether a key to quit was pressed.
  bool quits() {
    pollfd one{STDIN_FILENO, POLLIN, 0};
    while (has_keys_ && ::poll(&one, 1, 0) == 1) {
      char key = 0;
      if (::read(STDIN_FILENO, &key, 1) != 1) has_keys_ = false;
      if (key == 'q' || key == 'Q') return true;
    }
    return false;
  }

 private:
  termios before_{};
  bool has_keys_ = false;
};

class Top {
 public:
  Top(const http::AdminClient& client, const TopOptions& options) : client_(client), options_(options) {
    if (::isatty(STDOUT_FILENO) == 1 && !options.once && !options.json) screen_ = std::make_unique<DrawnScreen>();
  }

  int run() {
    for (;;) {
      EventStream events([this](const std::string& name, const std::string& data) {
        if (name == "overview") show(data);
      });
      const http::Answer answer = client_.follow(
          kTarget, [&](std::string_view piece) { events.take(piece); }, [this] { return goes_on(); });
      if (done_ || ended) return 0;
      SCONCE_CHECK(answer.status != 404, kUnsupported, options_.url,
                   ": this server has no live overview (GET /v2/admin/live): it is older than this program, or the "
                   "address is not its admin listener");
      SCONCE_CHECK(answer.status == 0, kUnavailable, options_.url, ": ", answer.reason());
      // On a screen, wait for a restarting server; a script gets an error.
      SCONCE_CHECK(screen_, kUnavailable, options_.url, ": ", answer.problem);
      problem_ = printable(answer.problem) + "; trying again";
      draw();
      const auto again = std::chrono::steady_clock::now() + kTryAgain;
      while (std::chrono::steady_clock::now() < again) {
        if (!goes_on()) return 0;
        std::this_thread::sleep_for(kLook);
      }
    }
  }

 private:
  bool goes_on() {
    if (screen_ && screen_->quits()) ended = true;
    if (resized.exchange(false)) draw();
    return !ended && !done_;
  }

  void show(const std::string& data) {
    const OrderedJson document = OrderedJson::parse(data, nullptr, false);
    Overview overview = overview_of(document);
    problem_.clear();
    const bool first = history_.empty();
    if (!first && overview.time > history_.now().time &&
        overview.time - history_.now().time < options_.interval_s - kEarly)
      return;
    history_.add(std::move(overview));
    if (screen_) return draw();
    // Rates need two events.
    if (first) return;
    if (options_.json)
      std::cout << dump(rates_document(history_)) << "\n" << std::flush;
    else
      for (const std::string& line : log_lines(history_)) std::cout << line << "\n" << std::flush;
    done_ = options_.once;
  }

  void draw() const {
    if (screen_) DrawnScreen::draw(screen_lines(history_, options_.url, problem_, DrawnScreen::size(), on_terminal()));
  }

  const http::AdminClient& client_;
  const TopOptions& options_;
  std::unique_ptr<DrawnScreen> screen_;  // null: output as lines
  History history_;
  std::string problem_;
  bool done_ = false;
};

int top(const TopOptions& options) {
  const http::AdminServer server = http::parse_admin_server(options.url);
  // OpenSSL would raise it when it writes to a closed connection.
  if (server.tls) std::signal(SIGPIPE, SIG_IGN);
  const http::ClientTls tls =
      server.tls ? http::checked_tls(options.ca, options.certificate, options.key) : http::ClientTls();
  const http::AdminClient client(server, http::read_token(options.token_file), kPatience, tls);
  return Top(client, options).run();
}

}  // namespace

Action add_top(CommandLine& app) {
  auto options = std::make_shared<TopOptions>();
  app.option("URL", options->url, "The server's admin listener; http://127.0.0.1:8003 without");
  app.option("--interval", options->interval_s, "Seconds from one drawing or line to the next").positive();
  app.flag("--once", options->once, "Show one second, and end");
  app.flag("--json", options->json, "As JSON, an object a line");
  app.option("--token-file", options->token_file, "File whose first line is a token of scope metrics or admin");
  app.option("--ca", options->ca, "Certificates in PEM to trust for https; without, the system's");
  app.option("--certificate", options->certificate, "Certificate in PEM for servers that request one");
  app.option("--key", options->key, "Its private key");
  app.footer(
      "In a terminal, q ends it. Elsewhere it prints a line for each model.\n"
      "Exit status: 0 ended by the user or by --once, 1 the server cannot be reached or refuses.");
  app.checked([options] { http::parse_admin_server(options->url); });
  return [options] { return top(*options); };
}

}  // namespace sconce::server::cli
