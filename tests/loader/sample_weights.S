# Weights as the compiler embeds them: a large section of its own. 64 KiB, the byte at i is i % 251.
  .section .lrodata, "al", @progbits
  .balign 64
  .globl _binary_constants_bin_start, _binary_constants_bin_end
_binary_constants_bin_start:
  .set i, 0
  .rept 65536
  .byte i % 251
  .set i, i + 1
  .endr
_binary_constants_bin_end:
  .section .note.GNU-stack, "", @progbits
