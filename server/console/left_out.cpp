// The functions of this room, for a build without it (server/support/left_out.h).
#include "server/support/left_out.h"

#include "server/console/console_api.h"
#include "server/console/feed.h"
#include "server/console/page_files.h"

namespace sconce::server::console {
namespace {

const LeftOut kConsole("console", "SCONCE_CONSOLE", {});

}  // namespace

constinit const std::span<const PageFile> kPageFiles;

const PageFile* find_page_file(std::string_view) { kConsole.fail(); }
void answer_page_file(const PageFile&, http::Coding, std::string_view, http::Response&) { kConsole.fail(); }

std::unique_ptr<Feed> feeds::overview(OverviewSource&, std::string_view) { kConsole.fail(); }
std::unique_ptr<Feed> feeds::log_lines(OverviewSource&, std::string_view) { kConsole.fail(); }

std::string admin::log_lines(rollout::Rollout&, const rollout::AdminRequest&) { kConsole.fail(); }

}  // namespace sconce::server::console
