#include "server/admin_access.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "sconce/check.h"
#include "server/log.h"
#include "server/trim.h"

namespace sconce {
namespace {

constexpr size_t kShortest = 16, kLongest = 4096;
constexpr std::string_view kBlanks = " \t\r\n";

// Empty, with `problem` set, if the file holds no token.
std::string read_token(const std::string& path, std::string& problem) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kLongest + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    problem = "cannot be read: ";
    problem += std::strerror(errno);
    return {};
  }
  text.resize(static_cast<size_t>(file.gcount()));
  const std::string_view token = trim(text, kBlanks);
  const auto printable = [](char c) { return c > ' ' && c <= '~'; };
  if (token.size() < kShortest || token.size() > kLongest || !std::all_of(token.begin(), token.end(), printable)) {
    problem = "must hold one token of 16 to 4096 printable characters without spaces";
    return {};
  }
  return std::string(token);
}

// The time it takes depends on the length of `given` alone.
bool same_token(std::string_view given, std::string_view token) noexcept {
  volatile unsigned char difference = given.size() != token.size();
  for (size_t i = 0; i < given.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (given[i] ^ token[i % token.size()]));
  }
  return difference == 0;
}

bool same_file(const struct stat& a, const struct stat& b) noexcept {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

AdminAccess::AdminAccess(std::string token_file) : file_(std::move(token_file)) {
  if (file_.empty()) return;
  ::stat(file_.c_str(), &seen_);
  std::string problem;
  token_ = read_token(file_, problem);
  SCONCE_CHECK(!token_.empty(), kInvalidArgument, "setting admin_token_file: ", file_, " ", problem);
}

void AdminAccess::read_again() {
  struct stat now {};
  if (::stat(file_.c_str(), &now) != 0 || same_file(now, seen_)) return;
  seen_ = now;
  std::string problem;
  std::string token = read_token(file_, problem);
  if (token.empty()) return log_warn("the admin token stays as it was: {} {}", printable(file_), problem);
  token_ = std::move(token);
}

AdminAccess::Refusal AdminAccess::check(std::string_view authorization, std::string_view origin, bool changes) {
  if (token_.empty()) {
    // A page from anywhere can make its reader's browser send this.
    if (changes && !origin.empty()) return {403, "requests of web pages need a token: admin_token_file"};
    return {};
  }
  read_again();
  constexpr std::string_view kScheme = "Bearer ";
  const boost::beast::string_view scheme(authorization.data(), std::min(authorization.size(), kScheme.size()));
  if (!boost::beast::iequals(scheme, {kScheme.data(), kScheme.size()})) {
    return {401, "administration needs Authorization: Bearer TOKEN"};
  }
  if (!same_token(trim(authorization.substr(kScheme.size()), kBlanks), token_)) return {403, "not the admin token"};
  return {};
}

}  // namespace sconce
