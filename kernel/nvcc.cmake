# nvcc.cmake -- device code as targets. nvcc compiles it by rule, since CMake 3.25 does not know the family target
# 100f, whose machine code runs on every 10.x chip (B200, B300); one call per unit, so that units compile in parallel.
# 90a is Hopper (H100, H200), with its wgmma.

# nvcc is looked for where CMake would look: CMAKE_CUDA_COMPILER, CUDACXX (paths, or names on the PATH), a toolkit's
# folder, the PATH; and last of all where the Makefile installs it from wheels.
find_program(DUALGEMM_NVCC NAMES ${CMAKE_CUDA_COMPILER} $ENV{CUDACXX} nvcc DOC "nvcc of CUDA 12.9 or newer"
             PATH_SUFFIXES bin PATHS /usr/local/cuda ${PROJECT_SOURCE_DIR}/build/cuda/nvidia/cu13
             HINTS ${CUDAToolkit_ROOT} ENV CUDAToolkit_ROOT ENV CUDA_PATH)
if(NOT DUALGEMM_NVCC)
  message(FATAL_ERROR "there is no nvcc: set DUALGEMM_NVCC or CUDACXX to one of CUDA 12.9 or newer, or "
                      "CUDAToolkit_ROOT to its toolkit; the Makefile finds or installs one")
endif()
file(REAL_PATH ${DUALGEMM_NVCC} DUALGEMM_CUDA_ROOT)
cmake_path(GET DUALGEMM_CUDA_ROOT PARENT_PATH DUALGEMM_CUDA_ROOT)
cmake_path(GET DUALGEMM_CUDA_ROOT PARENT_PATH DUALGEMM_CUDA_ROOT)
add_library(dualgemm_cuda_headers INTERFACE)
target_include_directories(dualgemm_cuda_headers SYSTEM INTERFACE ${DUALGEMM_CUDA_ROOT}/include)

# GCC 12 gives false warnings -Wrestrict for the concatenation of std::string (GCC bug 105651).
add_library(dualgemm_warnings INTERFACE)
target_compile_options(dualgemm_warnings INTERFACE -Wall -Wextra $<$<BOOL:${PROJECT_IS_TOP_LEVEL}>:-Werror>
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)

# The level of optimisation is that of the host's side, which starts kernels; device code has -O3.
set(nvcc_optimise -O1)
set(nvcc_flags -I${PROJECT_SOURCE_DIR})
# What ships is small and knows no path of the build. With DUALGEMM_DEVELOP the PTX beside the machine code names lines
# of the source, and stays uncompressed for a debugger. A spill or a stack frame fails the build.
if(DUALGEMM_DEVELOP)
  list(APPEND nvcc_flags -lineinfo --compress-mode=none)
else()
  list(APPEND nvcc_flags --compress-mode=size)
endif()
set(nvcc_object_flags
    -Werror all-warnings -Xptxas -warn-spills,-warn-lmem-usage,-Werror,-v
    -Xcompiler -fPIC,-Wall,-Wextra,-fvisibility=hidden,-fvisibility-inlines-hidden)

# ptxas says C7510 to C7519 where it makes every wgmma of a function wait for the one before it, and why. ptxas does not
# count that as a warning, so that -Werror lets it pass.
set(nvcc_serialised "(C751[0-9])")

# nvcc_command(OUTPUT SOURCE FLAGS...): one call, made again when a file that it reads has changed. OUTPUT.log has what
# the compiler said; of objects, the registers of every kernel, too. FLAGS may begin with PIPELINED: serialised wgmma
# are an error then.
function(nvcc_command output source)
  set(check)
  if("PIPELINED" IN_LIST ARGN)
    list(REMOVE_ITEM ARGN PIPELINED)
    # Prints the lines that say so, removes the object, and fails.
    set(check COMMAND sh -c "! grep \"$0\" \"$1\" || ! rm \"$2\"" ${nvcc_serialised} ${output}.log ${output})
  endif()
  cmake_path(GET output PARENT_PATH folder)
  file(MAKE_DIRECTORY ${folder})
  cmake_path(RELATIVE_PATH output BASE_DIRECTORY ${PROJECT_BINARY_DIR} OUTPUT_VARIABLE name)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${DUALGEMM_NVCC} ${nvcc_optimise} ${nvcc_flags} ${ARGN} -MD -MF ${output}.d -MT ${output} ${source}
            -o ${output}
            > ${output}.log 2>&1 || sh -c "cat \"$0\"; exit 1" ${output}.log
    ${check}
    DEPENDS ${source} DEPFILE ${output}.d
    COMMENT "nvcc ${name}" VERBATIM)
endfunction()

# nvcc_variants(STEM EXTENSION SOURCE FLAGS VARIANTS RESULT): a call for each variant, or one where there are none; the
# files that they make.
function(nvcc_variants stem extension source flags variants result)
  if(NOT variants)
    nvcc_command(${stem}.${extension} ${source} ${flags})
    set(${result} ${stem}.${extension} PARENT_SCOPE)
    return()
  endif()
  set(made)
  foreach(variant IN LISTS variants)
    string(REGEX MATCH "^([a-z0-9]+)=(.+)$" _ ${variant})
    set(output ${stem}_${CMAKE_MATCH_1}.${extension})
    nvcc_command(${output} ${source} ${flags} ${CMAKE_MATCH_2})
    list(APPEND made ${output})
  endforeach()
  set(${result} ${made} PARENT_SCOPE)
endfunction()

# nvcc_objects(NAME [PIPELINED] [PTX] [ON_DEMAND] [STANDARD c++17] [ARCH 100f...] [INCLUDE FOLDERS...] SOURCES...): an
# object library with one object per source, compiled for the architectures that are named, or for the Blackwell family.
# What links to it, in whichever folder, gets its objects. With VARIANTS NAME=FLAG... a source has one object for each
# of them, source_NAME. PIPELINED: no wgmma may be serialised. PTX: the objects have no machine code, since the
# simulator runs PTX; the target `assembled` makes it all the same, for what ptxas says. ON_DEMAND: not a part of `all`.
function(nvcc_objects name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PIPELINED;PTX;ON_DEMAND" "STANDARD" "ARCH;INCLUDE;SOURCES;VARIANTS")
  if(NOT arg_STANDARD)
    set(arg_STANDARD c++20)
  endif()
  if(NOT arg_ARCH)
    set(arg_ARCH 100f)
  endif()
  set(target)
  foreach(arch IN LISTS arg_ARCH)
    set(code [compute_${arch},sm_${arch}])
    if(arg_PTX)
      set(code compute_${arch})
    endif()
    list(APPEND target -gencode "arch=compute_${arch},code=${code}")
  endforeach()
  list(TRANSFORM arg_INCLUDE PREPEND -I)
  set(pipelined)
  if(arg_PIPELINED)
    set(pipelined PIPELINED)
  endif()
  set(objects)
  set(assembled)
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source)
    set(folder ${CMAKE_CURRENT_SOURCE_DIR})
    cmake_path(IS_PREFIX CMAKE_CURRENT_BINARY_DIR ${source} generated)
    if(generated)
      set(folder ${CMAKE_CURRENT_BINARY_DIR})
    endif()
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${folder} OUTPUT_VARIABLE object)
    cmake_path(REMOVE_EXTENSION object LAST_ONLY)
    cmake_path(ABSOLUTE_PATH object BASE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
    set(flags ${pipelined} -std=${arg_STANDARD} ${target} ${nvcc_object_flags} ${arg_INCLUDE} -c)
    nvcc_variants(${object} o ${source} "${flags}" "${arg_VARIANTS}" made)
    list(APPEND objects ${made})
    if(arg_PTX)
      foreach(arch IN LISTS arg_ARCH)
        set(flags -std=${arg_STANDARD} -arch=sm_${arch} ${nvcc_object_flags} ${arg_INCLUDE} -cubin)
        nvcc_variants(${object}_${arch} cubin ${source} "${flags}" "${arg_VARIANTS}" made)
        list(APPEND assembled ${made})
      endforeach()
    endif()
  endforeach()
  if(assembled)
    add_custom_target(${name}_assembled DEPENDS ${assembled})
    if(NOT TARGET assembled)
      add_custom_target(assembled)
    endif()
    add_dependencies(assembled ${name}_assembled)
  endif()
  set(all ALL)
  if(arg_ON_DEMAND)
    set(all)
  endif()
  add_custom_target(${name}_units ${all} DEPENDS ${objects})
  add_library(${name} OBJECT IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_OBJECTS "${objects}")
  add_dependencies(${name} ${name}_units)
endfunction()

# nvcc_ptx(TARGET FOLDER NAME ARCH 100f SOURCES... [VARIANTS...]): the PTX of every source, as FILE.ptx or FILE_NAME.ptx
# in ptx/FOLDER of the build.
function(nvcc_ptx target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;ARCH" "SOURCES;VARIANTS")
  set(folder ${PROJECT_BINARY_DIR}/ptx/${arg_FOLDER})
  set(outputs)
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(GET source STEM LAST_ONLY unit)
    set(flags -std=c++20 -arch=compute_${arg_ARCH} -ptx)
    nvcc_variants(${folder}/${unit} ptx ${source} "${flags}" "${arg_VARIANTS}" made)
    list(APPEND outputs ${made})
  endforeach()
  add_custom_target(${target} DEPENDS ${outputs})
  # The PTX of a source that no longer exists is removed, because readers of this folder read all of it.
  file(GLOB left ${folder}/*.ptx)
  list(REMOVE_ITEM left ${outputs})
  foreach(output IN LISTS left)
    file(REMOVE ${output})
  endforeach()
endfunction()
