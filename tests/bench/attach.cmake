# attach_bench.py measures whole training programs; it needs the library that they load.
if(NOT TARGET benches)
  add_custom_target(benches)
endif()
if(TARGET nanquest_attach_python)
  add_dependencies(benches nanquest_attach_python)
endif()
