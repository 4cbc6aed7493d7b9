//! The bridge to tt-metal's C++ API (cxx). See `docs/architecture.md` for what belongs here.
