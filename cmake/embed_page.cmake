# Writes a C++ source that holds the console's files, compressed. The build has no other tools than CMake and gzip.
#
# Usage: cmake -DFILES=a;b -DOUTPUT=page.cpp -DGZIP=gzip -P embed_page.cmake
cmake_minimum_required(VERSION 3.22)

set(most_bytes 204800)
set(type_html "text/html; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_svg "image/svg+xml")

set(arrays "")
set(rows "")
set(total 0)
set(number 0)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  string(REGEX REPLACE "^.*\\." "" suffix ${name})
  if(NOT DEFINED type_${suffix})
    message(FATAL_ERROR "${file}: no Content-Type is known for .${suffix} (cmake/embed_page.cmake)")
  endif()
  set(compressed ${OUTPUT}.gz)
  execute_process(COMMAND ${GZIP} -9nc ${file} OUTPUT_FILE ${compressed} COMMAND_ERROR_IS_FATAL ANY)
  file(SIZE ${file} bytes)
  file(SIZE ${compressed} compressed_bytes)
  file(SHA256 ${file} digest)
  string(SUBSTRING ${digest} 0 16 tag)
  file(READ ${compressed} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," hex "${hex}")
  string(APPEND arrays "constexpr unsigned char k${number}[] = {${hex}};\n")
  string(APPEND rows "    {\"${name}\", \"${type_${suffix}}\", \"W/\\\"${tag}\\\"\", k${number}, ${bytes}},\n")
  math(EXPR total "${total} + ${compressed_bytes}")
  math(EXPR number "${number} + 1")
endforeach()
file(REMOVE ${OUTPUT}.gz)
if(total GREATER most_bytes)
  message(FATAL_ERROR "the console's page has ${total} bytes compressed, more than ${most_bytes}")
endif()

file(WRITE ${OUTPUT} "#include \"server/console/page_files.h\"

namespace sconce::server::console {
namespace {
${arrays}
constexpr PageFile kFiles[] = {
${rows}};
}  // namespace

constinit const std::span<const PageFile> kPageFiles = kFiles;

}  // namespace sconce::server::console
")
