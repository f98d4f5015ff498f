// LeftOut: a part of the program that this build does not have (docs/install.md, build options). The file left_out.cpp
// of such a room has the functions that other rooms call, and declares one object of this class; the linker takes it
// instead of the room's other files. So no source asks which parts the build has, and one set of objects makes every
// program. Immutable; constructed before main().
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server {

struct ServerConfig;

class LeftOut {
 public:
  // part: "signing"; option: "SCONCE_SIGNING". names: the settings and commands that are of no use without the part.
  LeftOut(std::string_view part, std::string_view option, std::initializer_list<std::string_view> names);
  LeftOut(const LeftOut&) = delete;

  // kUnsupported with the option. context: the subject, such as "setting serve"; may be empty.
  [[noreturn]] void fail(std::string_view context = {}) const;

  // Throws like fail() for a setting that a source has set and a missing part needs.
  static void check_settings(const ServerConfig& config);
  // " (not in this build: SCONCE_SIGNING)" for the help text of such a setting or command, else empty.
  static std::string remark(std::string_view name);

 private:
  static const LeftOut* of(std::string_view name) noexcept;

  static const LeftOut* last_;
  const std::string_view part_, option_;
  const std::vector<std::string_view> names_;
  const LeftOut* const before_;
};

}  // namespace sconce::server
