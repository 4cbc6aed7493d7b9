//! A released trace is gone.

use tt_ops::{Result, Soft, Trace};

fn twice(trace: Trace<Soft, ()>) -> Result<()> {
    trace.release();
    trace.replay()
}

fn main() {}
