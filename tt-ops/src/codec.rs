//! Host codecs for port developers: tile order and block formats, byte for byte as tt-metal's.
//!
//! ```
//! use tt_ops::codec::{self, BlockFormat};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let matrix: Vec<f32> = (0..32 * 32).map(|i| i as f32).collect();
//! let bytes = codec::pack(BlockFormat::Bfp8B, &matrix, 32, 32)?;
//! assert_eq!(bytes.len(), 1088);
//! let back = codec::unpack(BlockFormat::Bfp8B, &bytes, 32, 32)?;
//! assert!((back[1023] - 1023.0).abs() <= 8.0);
//!
//! let mut tiles = vec![0.0; codec::tiled_len(32, 32)];
//! codec::tilize(&matrix, 32, 32, 0.0, &mut tiles)?;
//! assert_eq!(tiles[256], 16.0); // the second face starts with column 16
//! # Ok(())
//! # }
//! ```

pub use tt_soft::block_float::{BlockFormat, pack, unpack};
pub use tt_soft::tile::{tiled_len, tilize, untilize};
