# The CUDA runtime as the target dualgemm::cudart: in the build of the library, and in that of a program that found it
# by find_package. DUALGEMM_CUDART says which of the two runtimes that is; where CUDA::cudart is known already, as in a
# project with find_package(CUDAToolkit), it is that one.
set(DUALGEMM_CUDART shared CACHE STRING "the CUDA runtime of programs: shared or static")
set_property(CACHE DUALGEMM_CUDART PROPERTY STRINGS shared static)

if(NOT TARGET dualgemm::cudart)
  add_library(dualgemm::cudart INTERFACE IMPORTED GLOBAL)
  if(DUALGEMM_CUDART STREQUAL "static")
    set(dualgemm_cudart_target CUDA::cudart_static)
    set(dualgemm_cudart_names cudart_static)
  else()
    set(dualgemm_cudart_target CUDA::cudart)
    set(dualgemm_cudart_names cudart libcudart.so.13 libcudart.so.12)  # wheels have no libcudart.so
  endif()
  if(NOT TARGET ${dualgemm_cudart_target})
    find_package(CUDAToolkit QUIET)
  endif()
  if(TARGET ${dualgemm_cudart_target})
    target_link_libraries(dualgemm::cudart INTERFACE ${dualgemm_cudart_target})
  else()
    find_library(DUALGEMM_CUDART_LIBRARY NAMES ${dualgemm_cudart_names}
                 HINTS ${DUALGEMM_CUDA_ROOT} ${CUDAToolkit_ROOT} ENV CUDAToolkit_ROOT ENV CUDA_PATH
                 PATHS /usr/local/cuda PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib)
    if(NOT DUALGEMM_CUDART_LIBRARY)
      message(FATAL_ERROR "dualgemm: there is no CUDA runtime (${dualgemm_cudart_names}); set CUDAToolkit_ROOT to a "
                          "CUDA toolkit")
    endif()
    find_package(Threads REQUIRED)
    find_path(DUALGEMM_CUDART_INCLUDE cuda_runtime_api.h
              HINTS ${DUALGEMM_CUDA_ROOT} ${CUDAToolkit_ROOT} ENV CUDAToolkit_ROOT ENV CUDA_PATH
              PATHS /usr/local/cuda PATH_SUFFIXES include targets/x86_64-linux/include)
    if(DUALGEMM_CUDART_INCLUDE)
      target_include_directories(dualgemm::cudart SYSTEM INTERFACE ${DUALGEMM_CUDART_INCLUDE})
    endif()
    target_link_libraries(dualgemm::cudart INTERFACE ${DUALGEMM_CUDART_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS} rt)
  endif()
endif()
