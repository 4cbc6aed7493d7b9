//! Comparison figures (PCC, max abs, relative rms), computed in f64.
