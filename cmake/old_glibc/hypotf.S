.symver old_hypotf, hypotf@GLIBC_2.2.5
.globl hypotf
.hidden hypotf
.type hypotf, @function
hypotf:
  jmp old_hypotf@PLT
.size hypotf, . - hypotf
.section .note.GNU-stack, "", @progbits
