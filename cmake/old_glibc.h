/* Included first by every source of a portable build (SCONCE_PORTABLE): names the versions of functions that glibc 2.34 and
   GCC 11's libstdc++ have, where those of Debian 12 have newer ones. They differ in nothing that Sconce uses: hypot of
   2.35 no longer sets errno, and condition_variable::wait of GCC 12 is no longer noexcept. */
__asm__(".symver hypot,hypot@GLIBC_2.2.5");
__asm__(".symver hypotf,hypotf@GLIBC_2.2.5");
__asm__(".symver _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE,"
        "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
