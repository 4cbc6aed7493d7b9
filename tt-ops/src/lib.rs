//! The typed tensor API named after TTNN: the only seam between the model and a device.

#![forbid(unsafe_code)]
