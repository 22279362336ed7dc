// A library that is called like LibTorch, and is older than the question for its version.
int nothing_to_see;
