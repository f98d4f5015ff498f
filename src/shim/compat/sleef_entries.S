// The exported Sleef_* entries: each jumps through its slot of sconce_sleef_targets, whatever registers the vectors are in.
// A slot leads to sconce_sleef_closed until the library is open.
  .text
  .set sconce_sleef_index, 0
#define SCONCE_SLEEF(name, target)                       \
  .p2align 4;                                              \
  .globl name;                                             \
  .type name, @function;                                   \
name:                                                      \
  .cfi_startproc;                                          \
  jmp *sconce_sleef_targets + 8 * sconce_sleef_index(%rip); \
  .cfi_endproc;                                            \
  .size name, . - name;                                    \
  .set sconce_sleef_index, sconce_sleef_index + 1;
#include "src/shim/compat/sleef_functions.def"
#undef SCONCE_SLEEF

  .data
  .p2align 3
  .globl sconce_sleef_targets
  .hidden sconce_sleef_targets
  .type sconce_sleef_targets, @object
sconce_sleef_targets:
#define SCONCE_SLEEF(name, target) .quad sconce_sleef_closed;
#include "src/shim/compat/sleef_functions.def"
#undef SCONCE_SLEEF
  .size sconce_sleef_targets, . - sconce_sleef_targets

  .section .note.GNU-stack, "", @progbits
