//! The number stream: SplitMix64 (Steele, Lea, Flood 2014), seeded per tensor name, read at any position.

/// SplitMix64's increment, 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01B3;
/// Half of the 24-bit range of [`Stream::integer`].
const HALF: i32 = 1 << 23;

/// FNV-1a of `bytes`, 64 bits.
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(FNV_OFFSET, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

/// SplitMix64's finaliser.
#[inline]
pub(crate) const fn mix64(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The endless stream of one `(seed, name)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    base: u64,
}

impl Stream {
    /// The stream of `name` under `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        Self { base: mix64(fnv1a64(name.as_bytes()) ^ mix64(seed.wrapping_add(GOLDEN))) }
    }

    /// SplitMix64's state before the first output.
    pub const fn base(self) -> u64 {
        self.base
    }

    /// Element `index` as an integer in `[-2^23, 2^23)`.
    #[inline]
    pub const fn integer(self, index: u64) -> i32 {
        Self::draw(self.base.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// Fills `out` with the integers of elements `start..`.
    #[inline]
    pub fn integers(self, start: u64, out: &mut [i32]) {
        let mut state = self.base.wrapping_add(start.wrapping_mul(GOLDEN));
        for integer in out {
            state = state.wrapping_add(GOLDEN);
            *integer = Self::draw(state);
        }
    }

    #[inline]
    const fn draw(state: u64) -> i32 {
        (mix64(state) >> 40) as i32 - HALF
    }

    /// Element `index` in `[-1, 1)`, a multiple of 2^-23.
    #[inline]
    pub const fn unit(self, index: u64) -> f32 {
        Self::to_unit(self.integer(index))
    }

    /// What [`Stream::unit`] makes of [`Stream::integer`].
    #[inline]
    pub(super) const fn to_unit(integer: i32) -> f32 {
        integer as f32 * (1.0 / HALF as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_published_vectors() {
        assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(mix64(0), 0);
        assert_eq!(mix64(1), 0x5692_161d_100b_05e5);
        assert_eq!(mix64(GOLDEN), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn elements_stay_in_the_half_open_unit_range() {
        let stream = Stream::new(7, "x");
        assert!((0..100_000).all(|i| (-1.0..1.0).contains(&stream.unit(i))));
    }
}
