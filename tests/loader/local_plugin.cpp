// A plugin that depends on libsconce. The program opens the plugin RTLD_LOCAL and so sees no symbols of libsconce, but
// models must still find them. Returns the error, "" for success.
#include <cstring>
#include <string>

#include "package_format/elf_image.h"
#include "src/loader/library/shared_library.h"
#include "tests/loader/sample_file.h"

extern "C" [[gnu::visibility("default")]] const char* load_samples() {
  static std::string result;
  try {
    for (const char* name : {"sample_model", "sample_torchless", "sample_now", "sample_new_glibc", "sample_no_room"}) {
      const auto library = sconce::loader::SharedLibrary::load(sconce::ElfImage(sample(name), name));
      if (library.function<long(const char*)>("sample_binary")("0b111") != 7) result += std::string(name) + ": not 7. ";
    }
  } catch (const std::exception& error) {
    result += error.what();
  }
  return result.c_str();
}
