//! CPU kernels with TTNN's numerics: what the software device of `tt-ops` runs on.
