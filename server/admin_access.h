// AdminAccess: who may use the admin port. A token from a file, or, without one, whoever reaches the loopback address,
// web pages excepted.
//
// Confined to the worker of the admin port.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace sconce {

class AdminAccess {
 public:
  // Empty: no token is asked for. kIo if the file cannot be read, kInvalidArgument if what is in it is no token.
  explicit AdminAccess(std::string token_file);

  bool has_token() const noexcept { return !token_.empty(); }

  struct Refusal {
    int status = 0;  // 0: none
    std::string_view message;
  };
  // authorization, origin: fields of the request, empty where it has none. changes: the request is no GET.
  Refusal check(std::string_view authorization, std::string_view origin, bool changes);

 private:
  void read_again();

  const std::string file_;
  std::string token_;
  struct stat seen_ {};
};

}  // namespace sconce
