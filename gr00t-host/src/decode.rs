//! Model output → physical actions.
