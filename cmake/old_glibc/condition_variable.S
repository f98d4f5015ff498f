// std::condition_variable::wait(std::unique_lock<std::mutex>&)
.symver old_wait, _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11
.globl _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE
.hidden _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE
.type _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE, @function
_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE:
  jmp old_wait@PLT
.size _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE, . - _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE
.section .note.GNU-stack, "", @progbits
