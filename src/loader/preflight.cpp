#include "src/loader/preflight.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

#include "package_format/archive/archive_reader.h"
#include "sconce/check.h"
#include "src/custom_ops/aten/refusals.h"
#include "src/device/device_backend.h"
#include "src/device/sleef.h"
#include "src/loader/cpu_features.h"
#include "src/loader/library/elf_fixups.h"
#include "src/loader/library/loaded_symbols.h"
#include "src/loader/library/own_library.h"
#include "src/loader/library/uncalled.h"
#include "src/loader/refusals.h"

namespace sconce::loader {
namespace {

constexpr std::string_view kSleefPrefix = "Sleef_";

std::string joined(const std::vector<std::string>& texts, const char* separator) {
  std::string result;
  for (const std::string& text : texts) result += (result.empty() ? "" : separator) + text;
  return result;
}

struct CloseLibrary {
  void operator()(void* handle) const noexcept { dlclose(handle); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

Library open_library(const char* name) { return Library(dlopen(name, RTLD_LAZY | RTLD_LOCAL)); }

const void* owner_of(void* address) {
  Dl_info info;
  void* map = nullptr;
  return address && dladdr1(address, &info, &map, RTLD_DL_LINKMAP) ? map : nullptr;
}

// The remedy for a missing symbol; the message groups symbols by it. The first matching prefix decides.
struct Advice {
  std::string_view prefix, text;
};
constexpr std::string_view kCpp =
    "C++ functions of libtorch, of which only the C interface is served (compile with torch 2.6 or later and without "
    "C++ extensions)";
constexpr std::string_view kCInterface = "functions of torch's C interface that this build does not have";
constexpr std::string_view kCuda = "CUDA functions, which are not loaded or not in this build";
constexpr Advice kAdvice[] = {
    {"aoti_torch_dtype_", "element types that this build does not know"},
    {"aoti_torch_cpu_", "operators that this build does not have"},
    {"aoti_torch_cuda_", "CUDA operators, which are not loaded or not in this build"},
    {"aoti_", kCInterface},
    {"torch_", kCInterface},
    {"cuda", kCuda},
    {kSleefPrefix, "SLEEF functions that this build does not export"},
    {"_ZN2at", kCpp},
    {"_ZNK2at", kCpp},
    {"_ZN3c10", kCpp},
    {"_ZNK3c10", kCpp},
    {"_ZN5torch", kCpp},
    {"_ZNK5torch", kCpp},
};
constexpr std::string_view kCustomOperator =
    "symbols of no library it names (a custom operator's C functions come from a library that is loaded first)";

std::string_view advice(std::string_view symbol) {
  if (const std::string_view refusal = refusal_of(symbol); !refusal.empty()) return refusal;
  for (const Advice& a : kAdvice)
    if (symbol.starts_with(a.prefix)) return a.text;
  const bool driver = symbol.size() > 2 && symbol.starts_with("cu") && symbol[2] >= 'A' && symbol[2] <= 'Z';
  return driver ? kCuda : kCustomOperator;
}

// As above, for a library of custom operators.
std::string_view library_advice(std::string_view symbol) {
  const std::string_view text = advice(symbol);
  if (text == kCpp)
    return "C++ functions of libtorch (at::, c10::, torch::), which no process without libtorch has: such a library "
           "can be "
           "used once it is written against the stable ABI (torch/csrc/stable) or include/sconce/custom_op.h";
  return text == kCustomOperator ? "symbols that no library it names has" : text;
}

std::string readable(std::string_view symbol) {
  const std::string name(symbol);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? text.get() : name;
}

struct NeededLibrary {
  std::string name;
  Library handle;  // null if it cannot be opened
  LoadedSymbols symbols;
};

class Preflight {
 public:
  Preflight(const ModelSpec& spec, const ElfImage& image) : spec_(spec), image_(image) {}

  std::vector<std::string> run() {
    check_platform();
    check_instruction_sets();
    check_age();
    if (image_.machine() == EM_X86_64) {
      open_libraries();
      check_symbols();
    }
    if (reasons_.empty() && imports_sleef_) require_library(sleef_library());
    return std::move(reasons_);
  }

  std::vector<std::string> run_library() {
    for_library_ = true;
    check_platform();
    if (image_.machine() == EM_X86_64) {
      open_libraries();
      check_symbols();
    }
    return std::move(reasons_);
  }

 private:
  void check_platform() {
    if (image_.machine() != EM_X86_64)
      reasons_.push_back("its code is not x86-64: ELF machine " + std::to_string(image_.machine()) +
                         (spec_.machine.empty() ? "" : " (" + spec_.machine + ")"));
    else if (!spec_.machine.empty() && spec_.machine != "x86_64")
      reasons_.push_back("compiled for the machine " + spec_.machine + ", this is x86_64");
    if (!spec_.platform.empty() && spec_.platform != "linux")
      reasons_.push_back("compiled for the platform " + spec_.platform + ", this is linux");
    if (!spec_.device_key.empty() && spec_.device_key != "cpu" && spec_.device_key != "cuda")
      reasons_.push_back("compiled for the device " + spec_.device_key + ", sconce runs cpu and cuda");
  }

  void require_features(const CpuFeatures& needed, const std::string& source) {
    const CpuFeatures missing = needed.without(CpuFeatures::host());
    if (!missing.empty()) {
      reasons_.push_back("this CPU lacks " + missing.names() + " (" + source + ")");
      return;
    }
    if (needed.any_of(CpuFeatures::of("amx-tile")) && !enable_amx())
      reasons_.push_back("the kernel does not let this process use AMX (" + source + ")");
  }

  void check_instruction_sets() {
    if (image_.machine() != EM_X86_64) return;
    if (!spec_.march.empty() && spec_.march != "native") {
      const auto needed = features_of_march(spec_.march);
      if (needed)
        require_features(*needed, "compiled with -march=" + spec_.march);
      else
        reasons_.push_back("compiled with -march=" + spec_.march + ", whose instruction sets are not known here");
    }
    require_features(CpuFeatures::known_of(spec_.isa_flags), "its compile command names them");
    if (const auto needed = features_of_isa(spec_.cpu_isa))
      require_features(*needed, "AOTI_CPU_ISA is " + spec_.cpu_isa);
    else
      reasons_.push_back("AOTI_CPU_ISA is " + spec_.cpu_isa + ", which is not known here");
  }

  bool exports(const char* name) const { return image_.exported(name).has_value(); }

  void check_age() {
    if (!exports("AOTInductorModelContainerCreateWithDevice") || !exports("AOTInductorModelContainerRun"))
      reasons_.push_back("it exports no AOTInductorModelContainer functions: it is no model compiled by AOTInductor");
    else if (!exports("AOTInductorModelContainerGetConstantType"))  // new in torch 2.6
      reasons_.push_back("compiled by a torch older than 2.6: compile it again with 2.6 or later");
  }

  void open_libraries() {
    if (spec_.device_key == "cuda") {
      if (const std::string reason = why_no_device(DeviceType::kCuda); !reason.empty()) reasons_.push_back(reason);
      Library library = open_library(kCudaLibrary.data());
      const LoadedSymbols symbols(library.get());
      libraries_.push_back({std::string(kCudaLibrary), std::move(library), symbols});
    }
    for (const ElfImage::Needed& needed : image_.needed()) {
      const std::string name(needed.name);
      if (is_torch_library(name) || name == kSconceLibrary) continue;
      Library library = open_library(name.c_str());
      // Without a driver, libsconce may have its functions; missing ones are named below.
      if (!library && name != kCudaDriverLibrary)
        reasons_.push_back("it needs the library " + name + ", which cannot be opened");
      const LoadedSymbols symbols(library.get());
      libraries_.push_back({name, std::move(library), symbols});
    }
  }

  // A version of a library that symbols require, and the library.
  struct WantedVersion {
    const ElfImage::NeededVersion* needed;
    const NeededLibrary* library;  // null if the model does not need it or it cannot be opened
    uint16_t number;               // of the version in that library
  };

  std::vector<WantedVersion> wanted_versions() const {
    std::vector<WantedVersion> wanted;
    for (const ElfImage::NeededVersion& version : image_.needed_versions()) {
      const auto library = std::find_if(libraries_.begin(), libraries_.end(),
                                        [&](const NeededLibrary& l) { return l.handle && l.name == version.library; });
      const NeededLibrary* found = library == libraries_.end() ? nullptr : &*library;
      wanted.push_back({&version, found, found ? found->symbols.version(version.name) : LoadedSymbols::kNoVersion});
    }
    return wanted;
  }

  bool available(std::string_view symbol, const WantedVersion* version) const {
    const uint32_t hash = gnu_hash(symbol);
    if (version ? version->number && version->library->symbols.defines(symbol, hash, version->number)
                : own_symbols_.defines(symbol, hash, own_version_))
      return true;
    const std::string name(symbol);
    if (version) {
      const std::string wanted(version->needed->name);
      if (version->library && dlvsym(version->library->handle.get(), name.c_str(), wanted.c_str())) return true;
      // The dynamic linker's own symbols are only found in the global scope.
      if (dlvsym(program_.get(), name.c_str(), wanted.c_str())) return true;
      // libsconce's functions replace those that the library is too old for.
      void* found = dlsym(own_library().handle, name.c_str());
      return found && owner_of(found) == owner_of(reinterpret_cast<void*>(&incompatibilities));
    }
    if (dlsym(own_library().handle, name.c_str()) || dlsym(program_.get(), name.c_str())) return true;
    return std::any_of(libraries_.begin(), libraries_.end(), [&](const NeededLibrary& library) {
      return library.handle && dlsym(library.handle.get(), name.c_str());
    });
  }

  void check_symbols() {
    // Symbols without a relocation are never looked up.
    std::vector<bool> used(image_.symbol_count(), false);
    for (size_t i = 0, count = image_.relocation_count(); i < count; ++i)
      used[ELF64_R_SYM(image_.relocation(i).r_info)] = true;
    const std::vector<WantedVersion> versions = wanted_versions();

    std::map<std::string, std::vector<std::string>> missing;  // by remedy
    bool wide_sleef = false;
    for (size_t i = 1; i < image_.symbol_count(); ++i) {
      const Elf64_Sym symbol = image_.symbol(i);
      if (!used[i] || symbol.st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_WEAK) continue;
      const std::string_view name = image_.symbol_name(i);
      if (!for_library_ && is_uncalled(name)) continue;
      if (name.starts_with(kSleefPrefix)) {
        imports_sleef_ = true;
        wide_sleef |= name.find("f16") != std::string::npos || name.find("d8") != std::string::npos;
      }
      const uint16_t index = image_.symbol_version(i);
      const auto version = std::find_if(versions.begin(), versions.end(),
                                        [&](const WantedVersion& wanted) { return wanted.needed->index == index; });
      const WantedVersion* wanted = version == versions.end() ? nullptr : &*version;
      if (available(name, wanted)) continue;
      if (wanted)
        missing["symbols of newer libraries (here is glibc " + std::string(gnu_get_libc_version()) + ")"].push_back(
            readable(name) + " of " + std::string(wanted->needed->library) + " " + std::string(wanted->needed->name));
      else
        missing[std::string(for_library_ ? library_advice(name) : advice(name))].push_back(readable(name));
    }
    for (auto& [text, names] : missing) {
      std::sort(names.begin(), names.end());
      reasons_.push_back("it needs " + text + ": " + joined(names, ", "));
    }
    // Older packages do not record their instruction set, but the SLEEF functions they call show it.
    if (wide_sleef) require_features(CpuFeatures::of("avx512f"), "it calls SLEEF's 512-bit functions");
    if (imports_sleef_ && !open_library(sleef_library().soname))
      reasons_.push_back(std::string("it needs SLEEF: install the package ") + sleef_library().package);
  }

  const ModelSpec& spec_;
  const ElfImage& image_;
  std::vector<NeededLibrary> libraries_;
  Library program_{dlopen(nullptr, RTLD_LAZY)};
  const LoadedSymbols own_symbols_{own_library().handle};
  const uint16_t own_version_ = own_symbols_.version("SCONCE_ABI");  // src/exports.map
  bool imports_sleef_ = false, for_library_ = false;
  std::vector<std::string> reasons_;
};

}  // namespace

std::vector<std::string> incompatibilities(const ModelSpec& spec, const ElfImage& image,
                                           const custom_ops::ExternNodes* calls) {
  std::vector<std::string> reasons = Preflight(spec, image).run();
  if (!calls) return reasons;
  std::vector<std::string> aten, custom;
  std::map<std::string_view, std::vector<std::string>> refused;  // by reason
  for (const std::string& name : calls->missing())
    if (const std::string_view refusal = custom_ops::refusal_of_operator(name); !refusal.empty())
      refused[refusal].push_back(name);
    else
      (name.starts_with("aten::") || name.starts_with("prims::") ? aten : custom).push_back(name);
  for (const auto& [text, names] : refused)
    reasons.push_back("it calls " + joined(names, ", ") + ": " + std::string(text));
  if (!aten.empty()) reasons.push_back("it calls operators that this build does not have: " + joined(aten, ", "));
  if (!custom.empty())
    reasons.push_back(
        "it calls custom operators of which no library is loaded (op_libraries names them; an operator "
        "written in Python cannot run here): " +
        joined(custom, ", "));
  if (!calls->problems().empty())
    reasons.push_back("it calls operators in ways that this build does not have: " + joined(calls->problems(), ", "));
  return reasons;
}

void check_op_library(const ElfImage& image) {
  ModelSpec spec;
  spec.name = image.name();
  const std::vector<std::string> reasons = Preflight(spec, image).run_library();
  SCONCE_CHECK(reasons.empty(), kIncompatible, "library of custom operators ", image.name(), ": ",
               joined(reasons, "; "));
}

std::shared_ptr<const custom_ops::ExternNodes> extern_nodes(const Package& package, const ModelSpec& spec) {
  if (!spec.so_member.ends_with(".so")) return nullptr;
  const std::string name = spec.so_member.substr(0, spec.so_member.size() - 3) + ".json";
  const ArchiveMember* member = package.archive().find(name);
  if (!member) return nullptr;
  return std::make_shared<const custom_ops::ExternNodes>(
      custom_ops::ExternNodes::parse(package.archive().read_text(*member)));
}

void preflight(const ModelSpec& spec, const ElfImage& image, const custom_ops::ExternNodes* calls) {
  const std::vector<std::string> reasons = incompatibilities(spec, image, calls);
  SCONCE_CHECK(reasons.empty(), kIncompatible, "the model cannot run here: ", spec.name, ": ", joined(reasons, "; "));
}

}  // namespace sconce::loader
