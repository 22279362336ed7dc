# Finds the Python that tests run: NANQUEST_PYTHON_EXECUTABLE, one that has all of the modules below. Tries
# -DNANQUEST_PYTHON_EXECUTABLE, LibTorch's own environment, the active Python, and .venv beside the sources. Sets
# _reason to the missing modules if none has all.

set(_modules torch numpy h5py safetensors)
list(JOIN _modules "', '" _quoted)

set(_candidates "")
if(NANQUEST_PYTHON_EXECUTABLE)
  list(APPEND _candidates "${NANQUEST_PYTHON_EXECUTABLE}")
endif()
if(LibTorch_FOUND)
  # <environment>/lib/python3.x/site-packages/torch
  cmake_path(SET _env NORMALIZE "${LibTorch_ROOT_DIR}/../../../../bin/python")
  list(APPEND _candidates "${_env}")
endif()
list(APPEND _candidates python3 "${PROJECT_SOURCE_DIR}/.venv/bin/python")

set(_found "")
foreach(_python IN LISTS _candidates)
  execute_process(
    COMMAND "${_python}" -c
      "import importlib.util as u, sys; print('' if any(u.find_spec(m) is None for m in ['${_quoted}']) else sys.executable)"
    OUTPUT_VARIABLE _path ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _rc)
  if(_rc EQUAL 0 AND _path)
    set(_found "${_path}")
    break()
  endif()
endforeach()

if(_found)
  set(NANQUEST_PYTHON_EXECUTABLE "${_found}" CACHE FILEPATH "Python with torch, numpy, h5py and safetensors, run by tests" FORCE)
else()
  list(JOIN _modules ", " _names)
  set(_reason "no Python with ${_names} was found (cmake/setup.sh makes one, or give -DNANQUEST_PYTHON_EXECUTABLE=…)")
endif()
