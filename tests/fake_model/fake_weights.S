# The weights inside the model, or what stands for them: see fake_constants.h.
#ifndef FAKE_FEATURES
#define FAKE_FEATURES 4
#endif
#if defined(FAKE_STATE) && !defined(FAKE_FOLDED)
  .section .ldata, "awl", @progbits
#else
  .section .lrodata, "al", @progbits
#endif
  .balign 64
  .globl _binary_constants_bin_start, _binary_constants_bin_end
_binary_constants_bin_start:
#ifdef FAKE_APPENDED
  .quad FAKE_APPENDED_BYTES + 8
  .quad 0x5ce4c0deba5eba11
#elif defined(FAKE_EXTERNAL) || defined(FAKE_WEIGHTLESS)
  .quad 0
#else
  .rept (FAKE_FEATURES + 15) / 16
  .float 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
  .endr
  .rept (FAKE_FEATURES + 15) / 16
  .float 0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150
  .endr
#ifdef FAKE_STATE
  .zero 64
#endif
#endif
_binary_constants_bin_end:
