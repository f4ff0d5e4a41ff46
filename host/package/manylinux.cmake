# manylinux.cmake -- toolchain for files that run on every Linux with glibc 2.28. Debian's g++ compiles, for x86_64 or
# aarch64, and zig links, which has the symbols of each glibc: what 2.28 does not have is undefined then.
#   MANYLINUX_MACHINE     x86_64 or aarch64
#   MANYLINUX_FOLDER      what host/package/setup has made
#   MANYLINUX_LIBSTDCXX   how shared objects get libstdc++: shared, whose functions may then be no newer than
#                         GLIBCXX_3.4.24; or static, where no exception leaves them. Programs have a static one
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MANYLINUX_MACHINE MANYLINUX_FOLDER MANYLINUX_LIBSTDCXX)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${MANYLINUX_MACHINE})
set(CMAKE_C_COMPILER ${MANYLINUX_MACHINE}-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER ${MANYLINUX_MACHINE}-linux-gnu-g++)
set(CMAKE_C_FLAGS_INIT "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffunction-sections -fdata-sections")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")

foreach(file IN ITEMS libstdc++.so libstdc++.a libgcc_s.so.1 libgcc.a)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${file} OUTPUT_VARIABLE ${file}
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
endforeach()
set(shared_libstdcxx ${libstdc++.so})
if(MANYLINUX_LIBSTDCXX STREQUAL "static")
  set(shared_libstdcxx ${libstdc++.a})
endif()
# libgcc_s is this machine's, and needs its glibc; zig's libraries are those of 2.28.
set(zig "${MANYLINUX_FOLDER}/tools/bin/python -m ziglang cc -target ${MANYLINUX_MACHINE}-linux-gnu.2.28 -O2 -s \
-Wl,--gc-sections -Wl,--build-id=none -Wl,--allow-shlib-undefined -L${MANYLINUX_FOLDER}/${MANYLINUX_MACHINE}")
set(gcc "${libgcc_s.so.1} ${libgcc.a} -lm")
set(older ${MANYLINUX_FOLDER}/${MANYLINUX_MACHINE}/manylinux.o)
foreach(kind IN ITEMS LIBRARY MODULE)
  foreach(language IN ITEMS C CXX)
    set(CMAKE_${language}_CREATE_SHARED_${kind} "${zig} -fPIC <LINK_FLAGS> \
<CMAKE_SHARED_LIBRARY_CREATE_${language}_FLAGS> <SONAME_FLAG><TARGET_SONAME> -o <TARGET> <OBJECTS> <LINK_LIBRARIES>")
  endforeach()
  string(APPEND CMAKE_CXX_CREATE_SHARED_${kind} " ${older} ${shared_libstdcxx} ${gcc}")
endforeach()
set(CMAKE_CXX_LINK_EXECUTABLE
    "${zig} <LINK_FLAGS> -o <TARGET> <OBJECTS> <LINK_LIBRARIES> ${older} ${libstdc++.a} ${gcc}")
