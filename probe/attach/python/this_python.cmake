# Read first when pip builds the package: LibTorch is that of the Python which installs it.
#
# pip builds in a place of its own that hides the environment's packages behind PYTHONPATH; -E shows them again. (It also
# hides torch given by PYTHONPATH alone, so the plain look comes first.)
if(NOT LibTorch_ROOT AND Python_EXECUTABLE)
  foreach(_isolated IN ITEMS "" -E)
    execute_process(
      COMMAND "${Python_EXECUTABLE}" ${_isolated} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE _torch OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _rc)
    if(_rc EQUAL 0 AND _torch)
      break()
    endif()
  endforeach()
  if(NOT _rc EQUAL 0 OR NOT _torch)
    message(FATAL_ERROR "nanquest: ${Python_EXECUTABLE} has no torch, and the probe is built for the torch it will run with: install torch there first, then nanquest. "
      "(A build front end that makes an environment of its own hides yours: use pip, or give -Ccmake.define.LibTorch_ROOT=…/site-packages/torch)")
  endif()
  # No cache entry: the next environment that is installed into has a torch of its own.
  set(LibTorch_ROOT "${_torch}")
  message(STATUS "nanquest is built for the torch in ${_torch}")
endif()
