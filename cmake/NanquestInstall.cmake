# `cmake --install`: a prefix with the programs, the probe's libraries and headers, and a package for find_package.
# Replay and viewer are programs only; their libraries are not installed. Component `probe` is what a training program
# links, without the programs; component `train` adds the training loop.
include(CMakePackageConfigHelpers)
set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/nanquest")

set(_libraries nanquest_base)
get_property(_all GLOBAL PROPERTY NANQUEST_LIBRARIES)
foreach(_library IN LISTS _all)
  get_target_property(_dir ${_library} SOURCE_DIR)
  if(_dir MATCHES "^${PROJECT_SOURCE_DIR}/probe(/|$)")
    list(APPEND _libraries ${_library})
  endif()
endforeach()
# The public target, which has no file of its own.
if(TARGET nanquest_probe AND NOT nanquest_probe IN_LIST _libraries)
  list(APPEND _libraries nanquest_probe)
  set_target_properties(nanquest_probe PROPERTIES EXPORT_NAME probe)
endif()

target_include_directories(nanquest_base INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS ${_libraries} EXPORT nanquestTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT probe
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT probe)
if(TARGET nanquest_cuda)
  install(TARGETS nanquest_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT probe)
endif()
install(EXPORT nanquestTargets NAMESPACE nanquest:: DESTINATION ${_package_dir} COMPONENT probe)

# The public headers keep their folders: others include <nanquest/probe/nanquest.h>, the headers each other as
# "probe/…".
nanquest_public_headers(_headers)
foreach(_header IN LISTS _headers)
  cmake_path(GET _header PARENT_PATH _folder)
  install(FILES "${PROJECT_SOURCE_DIR}/${_header}" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nanquest/${_folder} COMPONENT probe)
endforeach()

if(TARGET nanquest_train)
  install(TARGETS nanquest_train EXPORT nanquestTrainTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT train)
  install(EXPORT nanquestTrainTargets NAMESPACE nanquest:: DESTINATION ${_package_dir} COMPONENT train)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/trainer" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nanquest COMPONENT train
    FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE PATTERN "layers.h" EXCLUDE PATTERN "utf8.h" EXCLUDE
    PATTERN "safetensors_types.h" EXCLUDE PATTERN "safetensors_hash.h" EXCLUDE PATTERN "safetensors_header.h" EXCLUDE
    PATTERN "strict_json.h" EXCLUDE PATTERN "config_reader.h" EXCLUDE PATTERN "rope_config.h" EXCLUDE PATTERN "rope.h" EXCLUDE
    PATTERN "folder_weights.h" EXCLUDE PATTERN "weight_maker.h" EXCLUDE PATTERN "adapter_files.h" EXCLUDE
    PATTERN "checkpointing.h" EXCLUDE PATTERN "saving.h" EXCLUDE PATTERN "launch.h" EXCLUDE PATTERN "mpi.h" EXCLUDE PATTERN "decoder.h" EXCLUDE)
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/nanquestConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/nanquestConfig.cmake" INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/nanquestConfigVersion.cmake"
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/nanquestConfig.cmake" "${PROJECT_BINARY_DIR}/nanquestConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindLibTorch.cmake" DESTINATION ${_package_dir} COMPONENT probe)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${CMAKE_INSTALL_DATADIR}/nanquest COMPONENT probe)
