// Each kernel of the operator tables has one declaration, and its definition includes it.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "tests/rules/tree.h"

namespace sconce::rules {
namespace {

using Words = std::vector<std::string>;

struct Function {
  std::string scope, name;  // "sconce::cpu", "cumsum"
  Words types;              // of the parameters
  bool defined;
  size_t line;
};

// Splits at commas outside brackets.
Words arguments_in(const std::string& list) {
  Words found(1);
  int depth = 0;
  for (const char c : list) {
    depth += c == '(' || c == '<' || c == '[' || c == '{' ? 1 : c == ')' || c == '>' || c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && depth == 0)
      found.emplace_back();
    else
      found.back() += c;
  }
  if (found.back().find_first_not_of(" \n") == std::string::npos) found.pop_back();
  return found;
}

// "const sconce::Tensor& self = {}" gives "constTensor&".
std::string type_in(const std::string& parameter) {
  static const std::regex otherwise(R"(\s*=[\s\S]*$)"), name(R"((\S[\s&*>]+)\w+\s*$)"),
      space(R"((?:::)?\bsconce::|\s+)");
  return std::regex_replace(std::regex_replace(std::regex_replace(parameter, otherwise, ""), name, "$1"), space, "");
}

// Blanks comments, contents of literals and preprocessor lines of C++; line numbers stay the same.
std::string compiled(const std::string& source) {
  std::string code = code_of(source);
  bool directive = false;
  for (size_t begin = 0; begin < code.size();) {
    const size_t end = std::min(code.find('\n', begin), code.size());
    const size_t first = std::min(code.find_first_not_of(" \t", begin), end);
    directive |= first < end && code[first] == '#';
    const bool goes_on = directive && end > begin && code[end - 1] == '\\';
    if (directive) std::fill(code.begin() + static_cast<long>(begin), code.begin() + static_cast<long>(end), ' ');
    directive = goes_on;
    begin = end + 1;
  }
  return code;
}

// Functions at namespace scope, in source order.
std::vector<Function> functions_in(const std::string& source) {
  static const std::regex room(R"(namespace\s+([\w:]*)\s*$|namespace\s*$)"), call(R"((\w+)\s*\()");
  const std::string code = compiled(source);
  std::vector<Function> found;
  Words scopes;  // "" for a brace that opens no namespace
  size_t begin = 0;
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i] != '{' && code[i] != '}' && code[i] != ';') continue;
    const std::string head = code.substr(begin, i - begin);
    std::smatch match;
    const bool opens = code[i] == '{', outside = std::count(scopes.begin(), scopes.end(), "") == 0;
    const bool is_namespace = opens && std::regex_search(head, match, room);
    if (!is_namespace && outside && code[i] != '}' && std::regex_search(head, match, call)) {
      const auto from = static_cast<size_t>(match.position(0) + match.length(0));
      size_t to = from;
      for (int depth = 1; to < head.size() && (depth += head[to] == '(' ? 1 : head[to] == ')' ? -1 : 0) > 0;) ++to;
      Function function{"", match[1], {}, opens, line_of(code, begin + static_cast<size_t>(match.position(0)))};
      for (const std::string& scope : scopes) function.scope += (function.scope.empty() ? "" : "::") + scope;
      for (const std::string& argument : arguments_in(head.substr(from, to - from)))
        function.types.push_back(type_in(argument));
      found.push_back(std::move(function));
    }
    if (opens) scopes.push_back(!is_namespace ? "" : match[1].length() ? match[1].str() : "(anonymous)");
    if (code[i] == '}' && !scopes.empty()) scopes.pop_back();
    begin = i + 1;
  }
  return found;
}

// A device's kernels: rows by name, with the types of their parameters.
struct Table {
  std::string scope, header;
  std::map<std::string, Words> rows;
};

Table read_table(const std::string& device, const std::vector<std::string>& files) {
  static const std::regex kind(R"re(#define KER_(\w+)\(n\) (.*) ?\bn\n)re");
  Table table{"sconce::" + device, "src/operators/" + device + "_ops.h", {}};
  std::map<std::string, std::string> types;
  const std::string kinds = read_text("src/operators/kernel_args.h");
  for (std::sregex_iterator it(kinds.begin(), kinds.end(), kind), end; it != end; ++it)
    types[(*it)[1]] = type_in((*it)[2].str() + "n");
  const std::string own = device == "cpu" ? "CPU_" : "CUDA_";
  const std::regex row("(?:^|\n)SCONCE_(?:" + own + R"re()?OP\((\w+), \d(?:, ([^\n]*))?\))re");
  for (const std::string& file : files) {
    const std::string text = read_text(file);
    for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
      Words& own_types = table.rows[(*it)[1]];
      own_types.clear();
      for (const std::string& argument : arguments_in((*it)[2])) {
        const size_t from = argument.find_first_not_of(' ');
        own_types.push_back(types.at(argument.substr(from, argument.find('(') - from)));
      }
    }
  }
  return table;
}

// Whether the function may be the row's kernel. An unknown type name may be an alias of any type; known ones must
// match.
bool is_kernel(const Function& function, const Words& row) {
  static const std::regex name(R"((?:const)?[\w:]+&?)");
  static const std::set<std::string> own = {"Tensor&", "constTensor&",     "TensorList", "OptTensorList",
                                            "IntSpan", "int64_t",          "double",     "bool",
                                            "DType",   "std::string_view", "Scalar"};
  return std::equal(function.types.begin(), function.types.end(), row.begin(), row.end(),
                    [](const std::string& type, const std::string& rows) {
                      return type == rows || (std::regex_match(type, name) && !own.contains(type));
                    });
}

Words violations(const SourceFile& file, const Table& table) {
  Words bad;
  const bool includes = file.text.find("#include \"" + table.header + "\"\n") != std::string::npos;
  for (const Function& function : functions_in(file.text)) {
    const auto row = table.rows.find(function.name);
    if (function.scope != table.scope || row == table.rows.end()) continue;
    const std::string where = file.path + ":" + std::to_string(function.line) + ": " + function.name;
    if (!is_kernel(function, row->second)) continue;
    if (!function.defined) bad.push_back(where + " is declared by " + table.header);
    if (function.defined && !includes) bad.push_back(where + " is defined without " + table.header);
  }
  return bad;
}

// A file's path below the device's folder, without ending.
std::string place_of(const std::string& path) {
  static const std::regex device("^src/(?:cpu/|cuda/|(?=tensor/))");
  const std::string below = std::regex_replace(path, device, "");
  return below.substr(0, below.rfind('.'));
}

// Where a device's kernels are defined, by name.
std::map<std::string, std::string> places(const Words& folders, const Table& table) {
  std::map<std::string, std::string> found;
  for (const SourceFile& file : read_tree(folders, {".cpp", ".cu"}))
    for (const Function& function : functions_in(file.text)) {
      const auto row = table.rows.find(function.name);
      if (function.scope == table.scope && row != table.rows.end() && function.defined &&
          is_kernel(function, row->second))
        found[function.name] = place_of(file.path);
    }
  return found;
}

// Where functions of a namespace are defined, by name; several places for overloads.
std::map<std::string, std::set<std::string>> definitions(const Words& folders, const std::string& scope) {
  std::map<std::string, std::set<std::string>> found;
  for (const SourceFile& file : read_tree(folders, {".cpp"}))
    for (const Function& function : functions_in(file.text))
      if (function.scope == scope && function.defined) found[function.name].insert(place_of(file.path));
  return found;
}

// Operators that are called by name, and the function that each row of these tables boxes. What is no function of
// `scope`, but a wrapper of the table's file, is left out.
std::map<std::string, std::string> named_operators(const Words& tables, const std::string& scope) {
  static const std::regex row(R"re(\{"(\w+::[\w.]+)[^"]*",\s*boxed\w*<([^{}]*)>\})re");
  const std::regex function(scope.empty() ? R"((\w+)(?:,|$))" : scope + R"(::(\w+))");
  std::map<std::string, std::string> found;
  for (const SourceFile& file : read_tree(tables, {".cpp"}))
    for (std::sregex_iterator it(file.text.begin(), file.text.end(), row), end; it != end; ++it) {
      const std::string boxed = (*it)[2];
      std::smatch match;
      if (std::regex_search(boxed, match, function)) found[(*it)[1]] = match[1];
    }
  return found;
}

// Whether two files are one on both devices, or a part of it: pooling/pooling and pooling/pooling_backward.
bool same_stem(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(b + '_') || b.starts_with(a + '_');
}

// A device code's file without what says that it is one.
std::string without_kernels(const std::string& place) {
  static const std::regex ending("_kernels$");
  return std::regex_replace(place, ending, "");
}

}  // namespace

TEST_CASE("kernels: defined under the declaration of their row, which is the only one") {
  const Table cpu = read_table("cpu", {"src/operators/op_table.def", "src/operators/aten_table.def"});
  const Table cuda = read_table("cuda", {"src/operators/op_table.def"});
  CHECK(cpu.rows.size() > 160);
  CHECK(cuda.rows.size() > 140);
  std::set<std::string> defined;
  for (const SourceFile& file : read_tree({"src"}, {".h", ".cpp", ".cu", ".cuh"})) {
    for (const std::string& bad : violations(file, cpu)) FAIL_CHECK(bad);
    for (const std::string& bad : violations(file, cuda)) FAIL_CHECK(bad);
    for (const Function& function : functions_in(file.text))
      if (function.defined) defined.insert(function.scope + "::" + function.name);
  }
  // Checks that the parser sees every kernel.
  for (const Table* table : {&cpu, &cuda})
    for (const auto& [name, types] : table->rows) CHECK_MESSAGE(defined.contains(table->scope + "::" + name), name);
}

TEST_CASE("kernels: both devices define an operator in files of one stem, which one of them may divide") {
  const auto cpu = places({"src/tensor", "src/cpu"}, read_table("cpu", {"src/operators/op_table.def"}));
  const auto cuda = places({"src/cuda"}, read_table("cuda", {"src/operators/op_table.def"}));
  int both = 0;
  for (const auto& [name, place] : cpu)
    if (const auto other = cuda.find(name); other != cuda.end() && ++both > 0)
      CHECK_MESSAGE(same_stem(place, other->second), name, " is in ", place, " on CPUs, in ", other->second,
                    " on CUDA");
  CHECK(both > 120);
  CHECK(same_stem("pooling/pooling", "pooling/pooling_backward"));
  CHECK_FALSE(same_stem("pooling/pooling", "pooling/pool"));
  CHECK_FALSE(same_stem("reduction/scan", "sorting/scan"));
}

TEST_CASE("kernels: operators that are called by name too") {
  // Pairs of places, the CPU's first, that need not have one stem.
  const std::map<std::string, std::string> other = {
      // One kernel of CUDA computes every function of elements, whatever file has it on CPUs.
      {"elementwise/*", "elementwise/elementwise"},
      // PyTorch's conjugate and its fillings of new tensors stand beside the views whose strides they take.
      {"tensor/dimensions", "elementwise/elementwise tensor/factory"},
      // products.cpp has the products that make their result, matmul.cpp those that write into one.
      {"matmul/products", "matmul/matmul"},
  };
  const auto excepted = [&](const std::string& cpu, const std::string& cuda) {
    for (const std::string& key : {cpu, cpu.substr(0, cpu.find('/')) + "/*"})
      if (const auto row = other.find(key); row != other.end() && row->second.find(cuda) != std::string::npos)
        return true;
    return false;
  };
  const auto cpu = definitions({"src/tensor", "src/cpu"}, "sconce::cpu"),
             cuda = definitions({"src/cuda"}, "sconce::cuda");
  const auto on_cpu = named_operators({"src/custom_ops/aten"}, "cpu"), on_cuda = named_operators({"src/cuda/abi"}, "");
  int both = 0;
  for (const auto& [name, function] : on_cuda) {
    const auto row = on_cpu.find(name);
    if (row == on_cpu.end()) continue;
    const auto ours = cpu.find(row->second), theirs = cuda.find(function);
    CHECK_MESSAGE(theirs != cuda.end(), name, ": no file of src/cuda defines ", function);
    if (ours == cpu.end() || theirs == cuda.end()) continue;
    ++both;
    bool fits = false;
    for (const std::string& a : ours->second)
      for (const std::string& b : theirs->second) fits = fits || same_stem(a, b) || excepted(a, b);
    CHECK_MESSAGE(fits, name, " is in ", *ours->second.begin(), " on CPUs, in ", *theirs->second.begin(), " on CUDA");
  }
  CHECK(both > 80);
}

TEST_CASE("kernels: device code has the stem of a source beside it") {
  int files = 0;
  const std::vector<SourceFile> hosts = read_tree({"src/cuda"}, {".cpp"});
  for (const SourceFile& file : read_tree({"src/cuda"}, {".cu"})) {
    if (file.path.starts_with("src/cuda/runtime/")) continue;  // what all families share, no family
    ++files;
    const std::string place = without_kernels(place_of(file.path));
    const bool named = std::any_of(hosts.begin(), hosts.end(), [&](const SourceFile& host) {
      const std::string of = place_of(host.path);
      return of.substr(0, of.rfind('/')) == place.substr(0, place.rfind('/')) && same_stem(of, place);
    });
    CHECK_MESSAGE(named, file.path, " has the stem of no .cpp file beside it");
  }
  CHECK(files > 25);
  CHECK(without_kernels("sorting/sort_kernels") == "sorting/sort");
  CHECK(without_kernels("sorting/kernels_of") == "sorting/kernels_of");
}

TEST_CASE("kernels: a violation is seen") {
  const Table table{"sconce::cpu", "src/operators/cpu_ops.h", {{"amax", {"constTensor&", "IntSpan", "bool"}}}};
  const auto bad = [&](const std::string& path, const std::string& text) { return violations({path, text}, table); };
  const std::string definition = "namespace sconce::cpu {\nint amax(const Tensor& self, IntSpan, bool keep) { {} }\n}";
  CHECK(bad("x.cpp", definition) == Words{"x.cpp:2: amax is defined without src/operators/cpu_ops.h"});
  CHECK(bad("x.cpp", "#include \"src/operators/cpu_ops.h\"\n" + definition).empty());
  CHECK(bad("x.cpp", "namespace sconce::cpu {\nvoid amax() {}\n}").empty());  // a missing kernel fails to link
  CHECK(bad("x.cpp", "namespace sconce {\nvoid amax() {}\nnamespace cpu {\nnamespace {\nvoid amax() {}\n}\n}\n}")
            .empty());
  CHECK(bad("x.cpp", "namespace sconce::cpu {\nvoid f() { amax(); }\nstruct S { void amax(); };\n}").empty());
  const std::string declaration = "namespace sconce { namespace cpu {\n\nTensor\namax(const sconce::Tensor& self, ";
  CHECK(bad("x.h", declaration + "IntSpan dims, bool keepdim = false);\n}}") ==
        Words{"x.h:4: amax is declared by src/operators/cpu_ops.h"});
  CHECK(bad("x.h", declaration + "Dims dims, bool);\n}}").size() == 1);  // Dims may be IntSpan
  CHECK(bad("x.h", declaration + "Scalar value, bool keepdim);\n}}").empty());
  CHECK(bad("x.h", declaration + "IntSpan dims);\n}}").empty());
  CHECK(bad("x.h", "// Tensor amax(const Tensor& self, IntSpan dims, bool keepdim);\n").empty());
}

}  // namespace sconce::rules
