nanquest_bench(bench_numerics SOURCES numerics_scan.cpp LINK nanquest::numerics)
