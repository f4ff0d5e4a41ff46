// manylinux.cpp -- what headers of newer systems let our objects ask for, and systems with glibc 2.28 do not
// have. It is linked into every file of a package (manylinux.cmake); what a file does not need is left out.
#include <sstream>

// Of glibc 2.32. Reference counts are not atomic where this is true. 0: there may be several threads.
extern "C" char __libc_single_threaded;
char __libc_single_threaded = 0;

// libstdc++ has these functions, too, and a part of them only since GCC 9 and 11.
template class std::basic_stringbuf<char>;
template class std::basic_istringstream<char>;
template class std::basic_ostringstream<char>;
template class std::basic_stringstream<char>;
