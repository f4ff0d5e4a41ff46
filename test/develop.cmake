# What the simulator, the benchmark and the tests share; the library has none of it.
enable_language(C)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Programs lie side by side at the top of the build folder, whichever folder makes them.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
# Programs name libcudart.so.13 and no path: LD_LIBRARY_PATH decides whether that is NVIDIA's or the simulated one.
set(CMAKE_SKIP_BUILD_RPATH ON)

# Much of the time of compiling is that of reading headers and of instantiating the same templates in every file.
option(DUALGEMM_JOIN_SOURCES "compile several sources of a program at once (unity build)" ON)
# join_sources(TARGET [BATCH]): compiles the sources of a target in batches, of 10 unless told otherwise. Their names
# have to differ, those in anonymous namespaces, too. A source with options of its own stays alone.
function(join_sources target)
  set(batch 10)
  if(ARGC GREATER 1)
    set(batch ${ARGV1})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${DUALGEMM_JOIN_SOURCES} UNITY_BUILD_BATCH_SIZE ${batch})
endfunction()
join_sources(dualgemm_host 50)  # other builds compile the library source by source
# join_texts(VARIABLE FILE SOURCES...): the same for compilers that CMake does not know as such. The variable is FILE,
# which includes the sources, or without joining the sources themselves.
function(join_texts variable file)
  set(${variable} ${ARGN} PARENT_SCOPE)
  if(DUALGEMM_JOIN_SOURCES)
    set(text)
    foreach(source IN LISTS ARGN)
      cmake_path(ABSOLUTE_PATH source)
      string(APPEND text "#include \"${source}\"\n")
    endforeach()
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    set(${variable} ${file} PARENT_SCOPE)
  endif()
endfunction()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
if(DUALGEMM_BUILD_TESTS)
  find_package(Catch2 REQUIRED)
  find_program(SPIN spin REQUIRED)
  enable_testing()
endif()

if(DUALGEMM_BUILD_BENCH OR DUALGEMM_BUILD_TESTS)
  add_subdirectory(bench)
endif()
add_subdirectory(test)
