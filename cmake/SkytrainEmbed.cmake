# Files that a library carries inside itself, so that a program needs nothing beside it.
#
#   skytrain_embed(<target> NAMESPACE <ns> FILES <name>=<path>...)
#
# For each file a function `std::string_view <ns>::<name>()` and the base64 of its SHA-256, `<ns>::<name>_sha256()`, as
# Content-Security-Policy wants it. Declare both in a header of the folder. The bytes are taken in by the assembler.

set(SKYTRAIN_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed_file.cmake)

function(skytrain_embed target)
  cmake_parse_arguments(E "" "NAMESPACE" "FILES" ${ARGN})
  foreach(item IN LISTS E_FILES)
    string(REGEX MATCH "^([a-z0-9_]+)=(.+)$" matched "${item}")
    set(name ${CMAKE_MATCH_1})
    set(path ${CMAKE_MATCH_2})
    set(source ${CMAKE_BINARY_DIR}/generated/${target}/${name}.cc)
    add_custom_command(OUTPUT ${source}
      COMMAND ${CMAKE_COMMAND} -DNAMESPACE=${E_NAMESPACE} -DNAME=${name} -DINPUT=${path} -DOUTPUT=${source}
              -P ${SKYTRAIN_EMBED_SCRIPT}
      DEPENDS ${path} ${SKYTRAIN_EMBED_SCRIPT} COMMENT "Embedding ${path}" VERBATIM)
    # The object must follow the file's bytes, which the compiler's own dependency list does not name.
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${path})
    target_sources(${target} PRIVATE ${source})
  endforeach()
endfunction()
