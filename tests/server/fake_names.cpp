// Preloaded into servers by test_starting_weights.py, test_otlp.py and test_stores.py: a name that stands for several
// addresses. FAKE_NAME is the name, FAKE_ADDRESSES are its addresses, separated by spaces. Others are looked up as
// ever. If there is FAKE_HELD, the look-up makes the file FAKE_HELD.asked and waits for the file FAKE_HELD. The first
// FAKE_FAILURES look-ups find nothing.
#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const char *const name = std::getenv("FAKE_NAME"), *const addresses = std::getenv("FAKE_ADDRESSES");
  if (!node || !name || !addresses || std::strcmp(node, name) != 0) return real(node, service, hints, found);
  if (const char* const held = std::getenv("FAKE_HELD")) {
    std::ofstream(std::string(held) + ".asked").put('\n');
    while (access(held, F_OK) != 0) usleep(1000);
  }
  static std::atomic<int> asked{0};
  const char* const failures = std::getenv("FAKE_FAILURES");
  if (failures && asked++ < std::atoi(failures)) return EAI_NONAME;
  *found = nullptr;
  addrinfo** end = found;
  std::istringstream text(addresses);
  for (std::string address; text >> address;) {
    if (const int problem = real(address.c_str(), service, hints, end); problem != 0) {
      if (*found) freeaddrinfo(*found);
      return problem;
    }
    while (*end) end = &(*end)->ai_next;
  }
  return *found ? 0 : EAI_NONAME;
}
