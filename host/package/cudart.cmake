# The CUDA runtime as the target dualgemm::cudart: in the build of the library, and in that of a program that found it
# by find_package. DUALGEMM_CUDART says which of the two runtimes the archive is linked with; the shared library has the
# shared one. Where CUDA::cudart is known already, as in a project with find_package(CUDAToolkit), dualgemm::cudart is
# CUDA::cudart. This file does not call find_package(CUDAToolkit), which in CMake 3.25.1, that of Debian 12, fails for
# CUDA 13.
set(DUALGEMM_CUDART shared CACHE STRING "the CUDA runtime beside the archive: shared or static")
set_property(CACHE DUALGEMM_CUDART PROPERTY STRINGS shared static)

# dualgemm_cudart(shared or static, NAMES of its file): the target dualgemm::cudart_shared or dualgemm::cudart_static.
function(dualgemm_cudart kind)
  add_library(dualgemm::cudart_${kind} INTERFACE IMPORTED GLOBAL)
  set(of_cmake CUDA::cudart)
  if(kind STREQUAL "static")
    set(of_cmake CUDA::cudart_static)
  endif()
  if(TARGET ${of_cmake})
    target_link_libraries(dualgemm::cudart_${kind} INTERFACE ${of_cmake})
    return()
  endif()
  # The toolkit is that of nvcc, which is where CMake looks for it.
  find_program(nvcc NAMES ${CMAKE_CUDA_COMPILER} $ENV{CUDACXX} nvcc NO_CACHE PATH_SUFFIXES bin PATHS /usr/local/cuda
               HINTS ${CUDAToolkit_ROOT} ENV CUDAToolkit_ROOT ENV CUDA_PATH)
  set(toolkit)
  if(nvcc)
    file(REAL_PATH ${nvcc} toolkit)
    cmake_path(GET toolkit PARENT_PATH toolkit)
    cmake_path(GET toolkit PARENT_PATH toolkit)
  endif()
  set(places HINTS ${DUALGEMM_CUDA_ROOT} ${CUDAToolkit_ROOT} ENV CUDAToolkit_ROOT ENV CUDA_PATH ${toolkit}
             PATHS /usr/local/cuda ${DUALGEMM_BUILT_WITH})
  # Folder by folder: the first place that has any of the names.
  find_library(DUALGEMM_CUDART_${kind} NAMES ${ARGN} NAMES_PER_DIR ${places}
               PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib)
  if(NOT DUALGEMM_CUDART_${kind})
    message(FATAL_ERROR "dualgemm: there is no CUDA runtime (${ARGN}); set CUDAToolkit_ROOT to a CUDA toolkit")
  endif()
  find_package(Threads REQUIRED)
  target_link_libraries(dualgemm::cudart_${kind} INTERFACE ${DUALGEMM_CUDART_${kind}} Threads::Threads
                        ${CMAKE_DL_LIBS} rt)
  find_path(DUALGEMM_CUDART_INCLUDE cuda_runtime_api.h ${places} PATH_SUFFIXES include targets/x86_64-linux/include)
  if(DUALGEMM_CUDART_INCLUDE)
    target_include_directories(dualgemm::cudart_${kind} SYSTEM INTERFACE ${DUALGEMM_CUDART_INCLUDE})
  endif()
endfunction()

if(NOT TARGET dualgemm::cudart)
  if(NOT DUALGEMM_CUDART MATCHES "^(shared|static)$")
    message(FATAL_ERROR "DUALGEMM_CUDART=${DUALGEMM_CUDART}: must be shared or static")
  endif()
  dualgemm_cudart(shared cudart libcudart.so.13 libcudart.so.12)  # wheels have no libcudart.so
  if(DUALGEMM_CUDART STREQUAL "static")
    dualgemm_cudart(static cudart_static)
  endif()
  add_library(dualgemm::cudart INTERFACE IMPORTED GLOBAL)
  target_link_libraries(dualgemm::cudart INTERFACE dualgemm::cudart_${DUALGEMM_CUDART})
endif()
