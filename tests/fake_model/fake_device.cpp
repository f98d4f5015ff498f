// Compiled once for all fake models. Models read their device with std::regex, whose statics are STB_GNU_UNIQUE.
#include <regex>
#include <stdexcept>
#include <string>

namespace fake {

void check_device(const std::string& device);

void check_device(const std::string& device) {
  static const std::regex devices("(cpu|cuda)(:([0-9]+))?");
  if (!std::regex_match(device, devices)) throw std::runtime_error("invalid device: " + device);
}

}  // namespace fake
