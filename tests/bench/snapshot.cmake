nanquest_bench(snapshot_bench SOURCES "${CMAKE_CURRENT_LIST_DIR}/snapshot_write.cpp" LINK nanquest::snapshot)
