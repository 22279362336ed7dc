# Filled by the set-up owner: install rules and the package config.
