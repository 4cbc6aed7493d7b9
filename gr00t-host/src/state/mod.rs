//! State: rotation, normalisation, padding.
