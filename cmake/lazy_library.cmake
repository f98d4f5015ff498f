# sconce_lazy_library(TARGET NAME <word> SONAME <name or path> PACKAGE <Debian package> SYMBOLS <file>)
#
# Gives TARGET a definition of every function listed in SYMBOLS (one a line, # comments) that opens the shared library
# SONAME at the first call of any of them, so that nothing is linked against it. The library's descriptor is
# sconce_lazy_<word>; src/device/lazy_library.h says how it is used.
function(sconce_lazy_library target)
  cmake_parse_arguments(PARSE_ARGV 1 lazy "" "NAME;SONAME;PACKAGE;SYMBOLS" "")
  get_filename_component(symbols ${lazy_SYMBOLS} ABSOLUTE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${symbols})
  file(STRINGS ${symbols} functions REGEX "^[A-Za-z_]")

  set(count 0)
  set(entries "")
  set(targets "")
  set(names "")
  set(strings "")
  foreach(function ${functions})
    string(APPEND entries
      "  .globl ${function}\n  .hidden ${function}\n  .type ${function}, @function\n  .p2align 4\n"
      "${function}:\n  .cfi_startproc\n  jmp *(.Ltargets + 8 * ${count})(%rip)\n"
      ".Lfirst_${count}:\n  pushq $${count}\n  .cfi_adjust_cfa_offset 8\n  jmp .Lresolve\n  .cfi_endproc\n"
      "  .size ${function}, . - ${function}\n")
    string(APPEND targets "  .quad .Lfirst_${count}\n")
    string(APPEND names "  .quad .Lname_${count}\n")
    string(APPEND strings ".Lname_${count}: .string \"${function}\"\n")
    math(EXPR count "${count} + 1")
  endforeach()

  set(descriptor sconce_lazy_${lazy_NAME})
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/lazy_library.S.in ${CMAKE_CURRENT_BINARY_DIR}/${descriptor}.S @ONLY)
  target_sources(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${descriptor}.S)
endfunction()
