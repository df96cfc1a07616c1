# generated/skytrain_version.h: SKYTRAIN_VERSION and SKYTRAIN_COMMIT ("unknown" without git, "+" appended when the tree
# has changes). Looked at again in every build, and written only when it has changed. A target whose files include it
# calls skytrain_uses_version(<target>).
set(SKYTRAIN_VERSION_HEADER ${CMAKE_BINARY_DIR}/generated/skytrain_version.h)
set(write_version ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
                  -DHEADER=${SKYTRAIN_VERSION_HEADER} -P ${CMAKE_CURRENT_LIST_DIR}/WriteVersion.cmake)
execute_process(COMMAND ${write_version} COMMAND_ERROR_IS_FATAL ANY)
add_custom_target(skytrain_version COMMAND ${write_version} BYPRODUCTS ${SKYTRAIN_VERSION_HEADER}
                  COMMENT "Version and commit" VERBATIM)

function(skytrain_uses_version target)
  add_dependencies(${target} skytrain_version)
endfunction()
