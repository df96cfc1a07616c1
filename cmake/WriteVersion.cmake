# cmake -DSOURCE_DIR=… -DVERSION=… -DHEADER=… -P WriteVersion.cmake
set(commit "unknown")
find_program(GIT git)
if(GIT)
  # Sources unpacked inside somebody else's repository are not at that repository's commit.
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse --show-toplevel OUTPUT_VARIABLE top ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(REAL_PATH ${SOURCE_DIR} source)
  if(top STREQUAL source)
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} describe --always --exclude=* --abbrev=12 --dirty=+
                    OUTPUT_VARIABLE described ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed)
      set(commit ${described})
    endif()
  endif()
endif()
set(text "#pragma once\n#define SKYTRAIN_VERSION \"${VERSION}\"\n#define SKYTRAIN_COMMIT \"${commit}\"\n")
set(old "")
if(EXISTS ${HEADER})
  file(READ ${HEADER} old)
endif()
if(NOT text STREQUAL old)
  file(WRITE ${HEADER} "${text}")
endif()
