// main.cpp -- the entry point of every test program. Catch2 2.x compiles its runner here; 3.x links its own.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
