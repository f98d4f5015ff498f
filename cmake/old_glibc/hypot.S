.symver old_hypot, hypot@GLIBC_2.2.5
.globl hypot
.hidden hypot
.type hypot, @function
hypot:
  jmp old_hypot@PLT
.size hypot, . - hypot
.section .note.GNU-stack, "", @progbits
