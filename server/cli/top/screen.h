// The overview as text: a screen of a terminal, lines for a log, or JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/cli/top/overview.h"
#include "server/support/json_document.h"

namespace sconce::server::cli {

struct ScreenSize {
  size_t columns = 80, rows = 24;
};

// "▁▂▃▅▇" of the last numbers, scaled to the largest; padded with blanks on the left.
std::string sparkline(const std::vector<double>& numbers, size_t columns);

// Lines that fit, from the top. address: of the server, as the user gave it. problem: why no events arrive now; empty:
// they do. colours: use the terminal's colour codes.
std::vector<std::string> screen_lines(const History& history, const std::string& address, const std::string& problem,
                                      ScreenSize size, bool colours);

// A line for each model and each alert, with the time.
std::vector<std::string> log_lines(const History& history);

OrderedJson rates_document(const History& history);

}  // namespace sconce::server::cli
