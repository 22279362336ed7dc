# FindLibTorch: LibTorch from a `torch` wheel (or an unpacked libtorch), with or without CUDA.
#
# The wheel's own CMake package requires a CUDA toolkit of the wheel's version even for CPU work; this one does not.
# Looks in this order: -DLibTorch_ROOT (the folder `torch`, a libtorch folder, or a Python environment), the active
# Python, .venv beside the sources.
#
# Sets: LibTorch_FOUND, LibTorch_VERSION (numbers), LibTorch_BUILD (that, or the whole text of a preview), LibTorch_ROOT_DIR, LibTorch_NOT_FOUND_REASON, target
# LibTorch::LibTorch.

function(_libtorch_from_python python out)
  execute_process(
    COMMAND "${python}" -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE _dir ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _rc)
  if(_rc EQUAL 0 AND EXISTS "${_dir}/include/ATen/ATen.h")
    set(${out} "${_dir}" PARENT_SCOPE)
  endif()
endfunction()

set(LibTorch_ROOT_DIR "")
set(_tried "")
set(_root "${LibTorch_ROOT}")
if(NOT _root AND DEFINED ENV{LibTorch_ROOT})
  set(_root "$ENV{LibTorch_ROOT}")
endif()
if(_root)
  if(EXISTS "${_root}/include/ATen/ATen.h")
    set(LibTorch_ROOT_DIR "${_root}")
  elseif(EXISTS "${_root}/bin/python")
    _libtorch_from_python("${_root}/bin/python" LibTorch_ROOT_DIR)
  endif()
  list(APPEND _tried "LibTorch_ROOT=${_root}")
else()
  # The first one that is new enough is used.
  foreach(_python IN ITEMS python3 "${CMAKE_SOURCE_DIR}/.venv/bin/python" "${PROJECT_SOURCE_DIR}/.venv/bin/python")
    set(_dir "")
    _libtorch_from_python("${_python}" _dir)
    list(APPEND _tried "${_python}")
    if(_dir AND EXISTS "${_dir}/version.py")
      file(STRINGS "${_dir}/version.py" _line REGEX "^__version__")
      string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" _v "${_line}")
      if(LibTorch_FIND_VERSION AND _v VERSION_LESS LibTorch_FIND_VERSION)
        continue()
      endif()
      set(LibTorch_ROOT_DIR "${_dir}")
      break()
    endif()
  endforeach()
endif()

if(LibTorch_ROOT_DIR)
  # Through the link .venv every checkout would have its own paths; with the real path ccache can share objects.
  file(REAL_PATH "${LibTorch_ROOT_DIR}" LibTorch_ROOT_DIR)
  if(EXISTS "${LibTorch_ROOT_DIR}/version.py")
    file(STRINGS "${LibTorch_ROOT_DIR}/version.py" _line REGEX "^__version__")
  elseif(EXISTS "${LibTorch_ROOT_DIR}/build-version")
    file(STRINGS "${LibTorch_ROOT_DIR}/build-version" _line)
  endif()
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" LibTorch_VERSION "${_line}")
  # A nightly build or a vendor's ("2.9.0a0+145a3a7") is between two releases: its libraries are those of no other.
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+[^'\" ]*" LibTorch_BUILD "${_line}")
  if(LibTorch_BUILD MATCHES "^[0-9.]+(\\+.*)?$")
    set(LibTorch_BUILD "${LibTorch_VERSION}")
  endif()
endif()

set(LibTorch_FOUND FALSE)
if(NOT LibTorch_ROOT_DIR)
  list(JOIN _tried ", " _looked)
  set(LibTorch_NOT_FOUND_REASON "no LibTorch was found (looked at: ${_looked}): install torch ${LibTorch_FIND_VERSION} or newer, or give -DLibTorch_ROOT=…/site-packages/torch")
elseif(LibTorch_FIND_VERSION AND LibTorch_VERSION VERSION_LESS LibTorch_FIND_VERSION)
  set(LibTorch_NOT_FOUND_REASON "LibTorch ${LibTorch_VERSION} in ${LibTorch_ROOT_DIR} is older than ${LibTorch_FIND_VERSION}")
else()
  set(LibTorch_FOUND TRUE)
  if(NOT TARGET LibTorch::LibTorch)
    set(_lib "${LibTorch_ROOT_DIR}/lib")
    # Folders of the CUDA runtime libraries that pip put beside torch: libtorch_cpu.so of a CUDA wheel needs libcudart.
    file(GLOB _nvidia "${LibTorch_ROOT_DIR}/../nvidia/*/lib")
    add_library(LibTorch::LibTorch INTERFACE IMPORTED)
    target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE
      "${LibTorch_ROOT_DIR}/include" "${LibTorch_ROOT_DIR}/include/torch/csrc/api/include")
    target_compile_definitions(LibTorch::LibTorch INTERFACE NDEBUG)
    target_compile_features(LibTorch::LibTorch INTERFACE cxx_std_20)
    set(_libs "${_lib}/libtorch_cpu.so" "${_lib}/libc10.so")
    # Without these two CUDA is not registered with the dispatcher. They exist only in CUDA wheels and need all of the
    # nvidia packages, so they are linked only on request.
    if(NANQUEST_LINK_TORCH_CUDA AND EXISTS "${_lib}/libtorch_cuda.so")
      list(APPEND _libs "${_lib}/libtorch_cuda.so" "${_lib}/libc10_cuda.so")
    endif()
    target_link_libraries(LibTorch::LibTorch INTERFACE -Wl,--no-as-needed ${_libs} -Wl,--as-needed)
    target_link_options(LibTorch::LibTorch INTERFACE -Wl,--allow-shlib-undefined)
    if(NOT NANQUEST_OLDER_SYSTEM)  # what runs elsewhere finds LibTorch there
      foreach(_dir IN LISTS _lib _nvidia)
        target_link_options(LibTorch::LibTorch INTERFACE "-Wl,-rpath,${_dir}")
      endforeach()
    endif()
  endif()
endif()
mark_as_advanced(LibTorch_ROOT_DIR)
