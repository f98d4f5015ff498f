// The dynamic symbol table of the product: src/exports.map lets out the ABI and the public API, whole, and nothing
// else.
#include <cxxabi.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <string>

#include "package_format/elf_image.h"

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::set<std::string>& exports() {
  static const std::set<std::string> names = [] {
    const std::string bytes = text_of(SCONCE_LIBRARY);
    const sconce::ElfImage image(std::as_bytes(std::span(bytes)), "libsconce");
    std::set<std::string> result;
    for (size_t i = 1; i < image.symbol_count(); ++i)
      if (image.symbol(i).st_shndx != SHN_UNDEF) result.emplace(image.symbol_name(i));
    return result;
  }();
  return names;
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? text.get() : name;
}

// Words of the public headers.
std::set<std::string> public_words() {
  std::set<std::string> words;
  static const std::regex word("[A-Za-z_][A-Za-z0-9_]*");
  for (const auto& entry : std::filesystem::directory_iterator(SCONCE_SOURCE_DIR "/include/sconce")) {
    const std::string text = text_of(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) words.insert(it->str());
  }
  return words;
}

}  // namespace

TEST_CASE("exports: nothing but the ABI and the public API") {
  static const std::regex abi("(aoti_torch_|aoti_record_function_|torch_|Sleef_|__isoc23_)[A-Za-z0-9_]+");
  static const std::regex torch(
      "(at::(cpu::init_amx|getCPUAllocator|init_num_threads|get_num_threads|get_thread_num|in_parallel_region|internal:"
      ":lazy_init_num_threads|"
      "internal::set_thread_num)|at::native::cpublas::(brgemm|brgemm_release|pack|could_pack)|"
      "c10::(GetCPUAllocator|detail::torchCheckFail|detail::torchInternalAssertFail|report_overflow|ParallelGuard::~?["
      "A-Za-z_]+))\\(."
      "*");
  // "sconce::Tensor::empty(...)", "typeinfo for sconce::Error", "sconce::version[abi:cxx11]()": the first name behind
  // sconce:: is a public word, and a class if it is not the last.
  static const std::regex own(
      "(typeinfo (name )?for |vtable for |VTT for "
      ")?sconce::(([A-Z][A-Za-z0-9_]*)(::.*)?|([a-z][a-z0-9_]*)(\\[abi:cxx11\\])?\\(.*)");
  // What libsconce_cuda needs of us.
  static const std::regex device(
      "sconce::((DeviceFiles|DeviceLoading|PhiloxGenerator|IndexPlan|IndexList|ResultType|Scalar|shim|cpu)::.*|"
      "(broadcast_shapes|broadcast_strides|wrap_dim|elementwise_strides|dense_strides|format_strides|"
      "check_no_internal_overlap|philox_generator|expand|copy|clone|empty_like|convolution_(shape|output|operands_"
      "are_channels_last)|pool_axes|adaptive_axes|suggested_format|promote_types|value_dtype|move_last|"
      "empty_matrices|no_matrix|column_major_copy|batch_shape|with_matrix|with_last|count_of|broadcast_matrices|"
      "check_matrices|check_square|check_matrix_rank|check_factored|check_solvable|check_same_dtype|check_equation|"
      "is_vector_for|check_reflectors|int_size|reduced_rows)(\\[abi:cxx11\\])?\\(.*)|(void "
      ")?sconce::custom_ops::Value::.*");
  const std::set<std::string> words = public_words();
  CHECK(exports().size() > 200);
  for (const std::string& name : exports()) {
    const std::string full = demangled(name);
    if (std::regex_match(name, abi) || std::regex_match(full, torch) || std::regex_match(full, device)) continue;
    std::smatch match;
    const bool public_api =
        std::regex_match(full, match, own) && words.count(match[4].matched ? match[4].str() : match[6].str()) != 0;
    CHECK_MESSAGE(public_api, full);
  }
}

TEST_CASE("exports: every operator and every SLEEF function") {
#define SCONCE_OP(name, ...) CHECK_MESSAGE(exports().count("aoti_torch_cpu_" #name) == 1, #name);
#include "src/operators/cpu_table.def"
#undef SCONCE_OP
#define SCONCE_SLEEF(name, function) CHECK_MESSAGE(exports().count(#name) == 1, #name);
#include "src/device/sleef_functions.def"
#undef SCONCE_SLEEF
}

TEST_CASE("exports: the C++ names that compiled code imports") {
  for (const char* name : {
           "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
           "_ZN3c106detail14torchCheckFailEPKcS2_jS2_",
           "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs",
           "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_S2_",
           "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_NS0_22CompileTimeEmptyStringE",
           "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
           "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs",
           "_ZN3c1015report_overflowEPKc",
           "_ZN3c1013ParallelGuardC1Eb",
           "_ZN3c1013ParallelGuardD1Ev",
           "_ZN3c1013ParallelGuard10is_enabledEv",
           "_ZN2at16init_num_threadsEv",
           "_ZN2at15getCPUAllocatorEv",
           "_ZN3c1015GetCPUAllocatorEv",
           "_ZN2at3cpu8init_amxEv",
           "_ZN2at6native7cpublas6brgemmEllllllbPKN3c104HalfES5_Pfb",
           "_ZN2at6native7cpublas6brgemmEllllllbPKN3c108BFloat16ES5_Pfb",
           "_ZN2at6native7cpublas6brgemmEllllllbPKN3c1013Float8_e4m3fnES5_Pfb",
           "_ZN2at6native7cpublas6brgemmEllllllbPKN3c1011Float8_e5m2ES5_Pfb",
           "_ZN2at6native7cpublas6brgemmEllllllbPKfS3_Pfb",
           "_ZN2at6native7cpublas6brgemmEllllllbPKhS3_Pib",
           "_ZN2at6native7cpublas6brgemmEllllllbPKhPKaPib",
           "_ZN2at6native7cpublas6brgemmEllllllbPKaS3_Pib",
           "_ZN2at6native7cpublas14brgemm_releaseEb",
           "_ZN2at6native7cpublas10could_packEN3c1010ScalarTypeE",
           "_ZN2at6native7cpublas4packEllllN3c1010ScalarTypeES3_PKvPv",
           "_ZN2at15get_num_threadsEv",
           "_ZN2at14get_thread_numEv",
           "_ZN2at18in_parallel_regionEv",
           "_ZN2at8internal21lazy_init_num_threadsEv",
           "_ZN2at8internal14set_thread_numEi",
           "__isoc23_strtol",
           "__isoc23_strtoul",
           "__isoc23_strtoll",
           "__isoc23_strtoull",
           "__isoc23_sscanf",
       })
    CHECK_MESSAGE(exports().count(name) == 1, name);
}
