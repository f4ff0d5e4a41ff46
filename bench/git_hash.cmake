# git_hash.cmake -- at each build: a header with the commit of the source, "-dirty" if files differ from it, or
# "unknown" where there is no repository. It is written only when that has changed.
#   cmake -DSOURCE=FOLDER -DHEADER=FILE -P git_hash.cmake
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=40 --exclude * OUTPUT_VARIABLE hash
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT hash)
  set(hash unknown)
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define DUALGEMM_GIT_HASH \"${hash}\"\n")
