#include "tests/exports/public_api.h"

#include <doctest/doctest.h>

using sconce::exports::PublicApi;

TEST_CASE("public api: what a header declares") {
  PublicApi api;
  api.read(R"(
#define SCONCE_WORD word_of_macro();
namespace sconce {
// int in_comment();
enum class Kind { kOne };
struct Plain { int number = 1; };
class Box final : public Plain {
 public:
  explicit Box(int size = {}) noexcept;
  ~Box() { close(); }
  Box& operator=(Box&&) noexcept;
  int size() const;
  virtual void ran() = 0;
  static Box made(Plain plain = {}, int count = 2);
  template <class T>
  T as();
  int held = compute(3);
 private:
  struct Part;
};
int read(const Box& box, int most = 7);
inline int twice(int x) { return 2 * x; }
template <class T>
int counted(T);
}
extern "C" int plain_name(void);
)");
  CHECK(api.undefined ==
        std::set<std::string>{"Box::Box", "Box::operator=", "Box::size", "Box::made", "read", "plain_name"});
  for (const char* declared : {"sconce::Box::Box(int)", "sconce::Box::~Box()", "sconce::Box::operator=(sconce::Box&&)",
                               "sconce::Box::size() const", "sconce::Box::made[abi:cxx11](sconce::Plain, int)",
                               "sconce::read(sconce::Box const&, int)", "int sconce::Box::as<int>()",
                               "typeinfo for sconce::Box", "vtable for sconce::Plain"}) {
    CAPTURE(declared);
    CHECK(api.declares(declared) == (std::string(declared).find("as<") == std::string::npos));
  }
  for (const char* other :
       {"sconce::Box::other()", "sconce::Box::Part::size()", "sconce::in_comment()", "sconce::word_of_macro()",
        "sconce::cpu::read(int)", "sconce::size()", "typeinfo for sconce::Kind", "read(int)"}) {
    CAPTURE(other);
    CHECK(!api.declares(other));
  }
}
