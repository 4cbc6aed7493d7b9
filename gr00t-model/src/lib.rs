//! GR00T N1.5 on `tt-ops`.

#![forbid(unsafe_code)]
