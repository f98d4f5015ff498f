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
#include "src/device/sleef_functions.def"
#undef SCONCE_SLEEF

// The names of vector variants in GCC's ABI: d for AVX2, e for AVX-512, N without a mask, then the number of elements.
#define SCONCE_LANES(function, parameters, name, accuracy)                            \
  SCONCE_LANE(_ZGVdN8##parameters##_sconce_lane_##function##_f, Sleef_##name##f8##accuracy)    \
  SCONCE_LANE(_ZGVeN16##parameters##_sconce_lane_##function##_f, Sleef_##name##f16##accuracy)  \
  SCONCE_LANE(_ZGVdN4##parameters##_sconce_lane_##function##_d, Sleef_##name##d4##accuracy)    \
  SCONCE_LANE(_ZGVeN8##parameters##_sconce_lane_##function##_d, Sleef_##name##d8##accuracy)
#define SCONCE_LANE(lane, entry) .globl lane; .hidden lane; .set lane, entry;
#include "src/device/sleef_lanes.def"
#undef SCONCE_LANE
#undef SCONCE_LANES

  .data
  .p2align 3
  .globl sconce_sleef_targets
  .hidden sconce_sleef_targets
  .type sconce_sleef_targets, @object
sconce_sleef_targets:
#define SCONCE_SLEEF(name, target) .quad sconce_sleef_closed;
#include "src/device/sleef_functions.def"
#undef SCONCE_SLEEF
  .size sconce_sleef_targets, . - sconce_sleef_targets

  .section .note.GNU-stack, "", @progbits
