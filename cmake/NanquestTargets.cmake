# How this project declares its targets: each one is named, exported as nanquest::<short name>, and finds its headers
# from the repository root.
include(GNUInstallDirs)

# nanquest_library(name SOURCES a.cpp … LINK lib …): static library nanquest_<name>, alias nanquest::<name>.
function(nanquest_library name)
  cmake_parse_arguments(A "TORCH" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(nanquest_${name} STATIC ${A_SOURCES})
  add_library(nanquest::${name} ALIAS nanquest_${name})
  set_target_properties(nanquest_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(nanquest_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/nanquest>)
  target_compile_features(nanquest_${name} PUBLIC cxx_std_20)
  target_link_libraries(nanquest_${name} PUBLIC ${A_LINK} PRIVATE ${A_PRIVATE_LINK})
  set_property(GLOBAL APPEND PROPERTY NANQUEST_LIBRARIES nanquest_${name})
  if(A_TORCH)
    nanquest_torch_target(nanquest_${name})
  endif()
endfunction()

# nanquest_torch_target(target): links LibTorch and uses the one precompiled header of ATen.
function(nanquest_torch_target target)
  get_target_property(_kind ${target} TYPE)
  if(_kind STREQUAL "EXECUTABLE")
    target_link_libraries(${target} PRIVATE LibTorch::LibTorch)
  else()
    target_link_libraries(${target} PUBLIC LibTorch::LibTorch)
  endif()
  if(NOT TARGET nanquest_torch_pch)
    add_library(nanquest_torch_pch OBJECT "${PROJECT_SOURCE_DIR}/cmake/torch_pch.cpp")
    target_link_libraries(nanquest_torch_pch PUBLIC LibTorch::LibTorch)
    target_compile_features(nanquest_torch_pch PUBLIC cxx_std_20)
    # Listed here and not in a header of nanquest: it then contains no path of this checkout, so ccache serves other
    # clones.
    target_precompile_headers(nanquest_torch_pch PRIVATE
      <ATen/ATen.h> <ATen/autocast_mode.h> <ATen/core/dispatch/Dispatcher.h> <ATen/record_function.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM nanquest_torch_pch)
endfunction()

# nanquest_hide_all_but_c(target): a library that a foreign process loads exports its C functions alone, so that nothing of ours is
# mistaken for something of the process (its HDF5, another copy of us).
function(nanquest_hide_all_but_c target)
  target_link_options(${target} PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/exports.map")
endfunction()

# nanquest_public_headers(out): probe/nanquest.h and all headers of nanquest that it includes, as paths from the root.
# Only these are installed.
function(nanquest_public_headers out)
  set(_todo probe/nanquest.h)
  set(_found "")
  while(_todo)
    list(POP_FRONT _todo _header)
    if(NOT _header IN_LIST _found)
      list(APPEND _found "${_header}")
      file(STRINGS "${PROJECT_SOURCE_DIR}/${_header}" _lines REGEX "^#include \"probe/")
      string(REGEX REPLACE "#include \"([^\"]+)\"[^;]*" "\\1" _lines "${_lines}")
      list(APPEND _todo ${_lines})
    endif()
  endwhile()
  set(${out} "${_found}" PARENT_SCOPE)
endfunction()

# nanquest_program(name SOURCES … LINK …): executable build/bin/nanquest-<name>, installed; target `programs`
# builds all of them.
function(nanquest_program name)
  cmake_parse_arguments(A "TORCH" "" "SOURCES;LINK" ${ARGN})
  add_executable(nanquest-${name} ${A_SOURCES})
  # Call stacks name functions by the dynamic symbol table.
  set_target_properties(nanquest-${name} PROPERTIES ENABLE_EXPORTS ON)
  target_include_directories(nanquest-${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(nanquest-${name} PRIVATE ${A_LINK})
  if(A_TORCH)
    nanquest_torch_target(nanquest-${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY NANQUEST_PROGRAMS nanquest-${name})
  if(NOT TARGET programs)
    add_custom_target(programs)
  endif()
  add_dependencies(programs nanquest-${name})
  install(TARGETS nanquest-${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# nanquest_test(name SOURCES … LINK … LABELS … [SHARDS n] [SECONDS n]): GoogleTest program build/bin/tests/<name>, which is one test of
# ctest (its output names the cases that failed), or <name>.1 … <name>.n, which share its cases. Besides its labels it has its
# room's name (tests/<room>/…) as a label; target tests-<room> builds the room's.
function(nanquest_test name)
  cmake_parse_arguments(A "TORCH" "SHARDS;SECONDS" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT A_LABELS)
    set(A_LABELS unit)
  endif()
  if(NOT A_SECONDS)
    set(A_SECONDS 1200)
  endif()
  add_executable(${name} ${A_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${A_LINK} GTest::gtest_main)
  # A test runs once, so saving a third of the compiler's time is worth more than speed.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(A_TORCH)
    nanquest_torch_target(${name})
  endif()
  # The room is the folder directly below tests/, however deep this folder is.
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/tests" OUTPUT_VARIABLE _room)
  string(REGEX REPLACE "/.*" "" _room "${_room}")
  if(NOT TARGET tests-${_room})
    add_custom_target(tests-${_room})
  endif()
  add_dependencies(tests-${_room} ${name})
  list(APPEND A_LABELS ${_room})
  list(REMOVE_DUPLICATES A_LABELS)
  if(NOT A_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_SECONDS})
    return()
  endif()
  foreach(_shard RANGE 1 ${A_SHARDS})
    math(EXPR _index "${_shard} - 1")
    add_test(NAME ${name}.${_shard} COMMAND ${name})
    set_tests_properties(${name}.${_shard} PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_SECONDS}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${A_SHARDS};GTEST_SHARD_INDEX=${_index}")
  endforeach()
endfunction()

# nanquest_bench(name SOURCES … LINK … [WORKER]): build/bin/bench/<name>; prints lines "name ratio goal ok|short spread". The test
# bench.<name> is one short round of it. WORKER: build/bin/bench-workers/<name>, which a benchmark in Python starts.
function(nanquest_bench name)
  cmake_parse_arguments(A "TORCH;WORKER" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  if(A_WORKER)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/bench-workers")
  else()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/bench")
    add_test(NAME bench.${name} COMMAND ${name})
    set_tests_properties(bench.${name} PROPERTIES LABELS bench TIMEOUT 600 ENVIRONMENT NANQUEST_BENCH_ROUNDS=1)
  endif()
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${A_LINK})
  if(A_TORCH)
    nanquest_torch_target(${name})
  endif()
  if(NOT TARGET benches)
    add_custom_target(benches)
  endif()
  add_dependencies(benches ${name})
  add_dependencies(tests-bench ${name})
endfunction()
