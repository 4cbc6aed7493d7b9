//! The initial noise of the flow: torch's seeded normal draws.
