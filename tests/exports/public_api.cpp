#include "tests/exports/public_api.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <vector>

namespace sconce::exports {
namespace {

std::string without_comments(const std::string& text) {
  static const std::regex quoted(R"re(//[^\n]*|/\*[^]*?\*/|"(?:\\.|[^"\\])*")re");
  static const std::regex directive(R"((^|\n)[ \t]*#(?:[^\n]*\\\n)*[^\n]*)");
  return std::regex_replace(std::regex_replace(text, quoted, ""), directive, "\n");
}

struct Scope {
  enum class Kind { kNamespace, kClass, kBody };
  Kind kind;
  std::string name;  // of a class, with those around it
};

// What a brace opens, by what stands before it.
Scope opened_by(const std::string& head, const Scope& outer) {
  static const std::regex space(R"(^\s*(?:namespace\b[^()]*|extern\s*)$)");
  static const std::regex own(R"(\b(?:class|struct)\s+(?:\[\[[^\]]*\]\]\s*)*(\w+)\s*(?:final\s*)?(?::[^()]*)?$)");
  std::smatch match;
  if (std::regex_match(head, space)) return {Scope::Kind::kNamespace, {}};
  if (head.find("enum") == std::string::npos && std::regex_search(head, match, own))
    return {Scope::Kind::kClass, outer.kind == Scope::Kind::kClass ? outer.name + "::" + match.str(1) : match.str(1)};
  return {Scope::Kind::kBody, {}};
}

// The function that a statement declares, empty where it declares none: the word before its first parenthesis.
std::string declared_by(const std::string& head) {
  static const std::regex function(R"((operator\s*(?:\(\s*\)|[^\s\w(]+|\s\w+)|~?\w+)\s*\()");
  static const std::regex none(R"(^\s*(?:friend|using|typedef|static_assert)\b)");
  std::smatch match;
  if (std::regex_search(head, none) || !std::regex_search(head, match, function)) return {};
  const std::string before = head.substr(0, static_cast<size_t>(match.position(0)));
  return before.find('=') == std::string::npos ? match.str(1) : std::string();
}

bool is_defined_elsewhere(const std::string& head) {
  static const std::regex here(R"(\btemplate\s*<|=\s*(?:0|default|delete)\s*$)");
  return !std::regex_search(head, here);
}

}  // namespace

void PublicApi::read(const std::string& text) {
  std::vector<Scope> scopes{{Scope::Kind::kNamespace, {}}};
  static const std::regex word(R"([A-Za-z_]\w*)");
  std::string head;
  const auto end_of = [&](bool defined) {
    const Scope& scope = scopes.back();
    const std::string function = declared_by(head);
    if (scope.kind == Scope::Kind::kClass) {
      std::set<std::string>& words = classes[scope.name];
      for (std::sregex_iterator it(head.begin(), head.end(), word), end; it != end; ++it) words.insert(it->str());
    } else if (!function.empty()) {
      functions.insert(function);
    }
    if (!function.empty() && !defined && is_defined_elsewhere(head))
      undefined.insert(scope.kind == Scope::Kind::kClass ? scope.name + "::" + function : function);
    head.clear();
  };
  const std::string code = without_comments(text);
  // Headers in C say what others define.
  if (code.find("namespace sconce") == std::string::npos) return;
  for (const char c : code) {
    const bool in_parentheses = std::ranges::count(head, '(') > std::ranges::count(head, ')');
    if (in_parentheses) {  // an argument's default may have braces
      head += c;
      continue;
    }
    const bool in_body = scopes.back().kind == Scope::Kind::kBody;
    if (c == '{') {
      const Scope next = in_body ? Scope{Scope::Kind::kBody, {}} : opened_by(head, scopes.back());
      if (next.kind == Scope::Kind::kClass) classes[next.name];
      if (next.kind == Scope::Kind::kBody) {
        if (!in_body) end_of(true);
      } else {
        head.clear();
      }
      scopes.push_back(next);
    } else if (c == '}') {
      if (scopes.size() > 1) scopes.pop_back();
    } else if (in_body) {
      continue;
    } else if (c == ';') {
      end_of(false);
    } else if (c != ':' || !std::regex_search(head, std::regex(R"(^\s*(?:public|private|protected)\s*$)"))) {
      head += c;
    } else {
      head.clear();
    }
  }
}

std::string name_of(const std::string& symbol) {
  // Results of templates stand before the name; arguments and [abi:cxx11] behind it.
  static const std::regex function(R"(^(?:[\w:<>, ]+ )?(sconce(?:::~?\w+|::operator[^\w(]+)+)(?:\[abi:cxx11\])?\(.*)");
  std::smatch match;
  return std::regex_match(symbol, match, function) ? match.str(1) : symbol;
}

bool PublicApi::declares(const std::string& symbol) const {
  static const std::regex of_class(R"((?:typeinfo|typeinfo name|vtable|VTT) for sconce::([\w:]+))");
  std::smatch match;
  if (std::regex_match(symbol, match, of_class)) return classes.contains(match.str(1));
  std::string name = name_of(symbol);
  if (!name.starts_with("sconce::")) return false;
  name = name.substr(std::string("sconce::").size());
  const size_t last = name.rfind("::");
  if (last == std::string::npos) return functions.contains(name);
  const auto found = classes.find(name.substr(0, last));
  std::string member = name.substr(last + 2);
  if (member.starts_with("~")) member = member.substr(1);
  if (member.starts_with("operator")) member = "operator";
  return found != classes.end() && found->second.contains(member);
}

PublicApi read_public_api(const std::filesystem::path& folder) {
  PublicApi api;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    api.read({std::istreambuf_iterator<char>(file), {}});
  }
  return api;
}

}  // namespace sconce::exports
