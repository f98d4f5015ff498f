// What the headers of include/sconce declare in namespace sconce, as far as a symbol table shows it.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

namespace sconce::exports {

struct PublicApi {
  // "Tensor", "WeightStream::Decoder": the words that the class' body says outside of function bodies.
  std::map<std::string, std::set<std::string>> classes;
  std::set<std::string> functions;
  // What is defined elsewhere, so that a library must export it: "Tensor::empty", "read_npz".
  std::set<std::string> undefined;

  // Adds what a header's text declares.
  void read(const std::string& text);
  // Whether it declares the name, demangled: "sconce::Tensor::empty(...)", "typeinfo for sconce::Error".
  bool declares(const std::string& symbol) const;
};

PublicApi read_public_api(const std::filesystem::path& folder);
// The name of a demangled function: "sconce::Tensor::empty" of "sconce::Tensor::empty(long)". Other symbols are
// themselves.
std::string name_of(const std::string& symbol);

}  // namespace sconce::exports
