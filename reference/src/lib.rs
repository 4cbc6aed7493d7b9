//! An independent fp32 reference of GR00T N1.5 on `ndarray`.

#![forbid(unsafe_code)]
