//! The card, through tt-metal. A concrete type in every build; without the feature `metal` it cannot be opened, and
//! says why.

#[cfg(not(feature = "metal"))]
mod absent;
mod board;
#[cfg(feature = "metal")]
mod card;

#[cfg(not(feature = "metal"))]
pub use absent::Metal;
pub use board::{BOARDS, Board};
#[cfg(feature = "metal")]
pub use card::{Metal, MetalBuffer, MetalTrace, MetalWeight};

/// How to open the card (arguments of `ttnn.open_device`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetalOptions {
    /// Which card.
    pub device_id: usize,
    /// Bytes of L1 set aside for small buffers.
    pub l1_small_size: usize,
    /// Bytes of DRAM set aside for traces.
    pub trace_region_size: usize,
}

impl Default for MetalOptions {
    fn default() -> Self {
        /// Room for the traces of one policy at several keys.
        const TRACE_REGION: usize = 256 << 20;
        Self { device_id: 0, l1_small_size: 0, trace_region_size: TRACE_REGION }
    }
}
