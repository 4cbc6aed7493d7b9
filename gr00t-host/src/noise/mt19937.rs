//! The Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), the generator behind torch's CPU `Generator`.

/// Words of state.
const N: usize = 624;
/// Distance of the word that each new word is mixed with.
const M: usize = 397;
/// The twist matrix's last row.
const MATRIX_A: u32 = 0x9908_b0df;
/// Multiplier of the initialisation (Knuth).
const INIT_MULTIPLIER: u32 = 1_812_433_253;

/// A seeded generator.
#[derive(Debug, Clone)]
pub(super) struct Mt19937 {
    state: [u32; N],
    next: usize,
}

impl Mt19937 {
    /// A generator as `torch.Generator().manual_seed(seed)` leaves it: torch keeps 64 bits of seed but
    /// initialises the state from the low 32 alone, so `seed` and `seed + 2^32` give the same stream.
    pub(super) fn new(seed: u64) -> Self {
        let mut state = [0_u32; N];
        let mut word = seed as u32;
        for (i, slot) in state.iter_mut().enumerate() {
            if i > 0 {
                word = INIT_MULTIPLIER.wrapping_mul(word ^ (word >> 30)).wrapping_add(i as u32);
            }
            *slot = word;
        }
        Self { state, next: N }
    }

    /// The next 32 bits.
    pub(super) fn next_u32(&mut self) -> u32 {
        if self.next == N {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// The next 64 bits: the first draw is the high half.
    pub(super) fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        (high << 32) | u64::from(self.next_u32())
    }

    fn twist(&mut self) {
        for i in 0..N {
            let mixed = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
            let twisted = (mixed >> 1) ^ if mixed & 1 == 1 { MATRIX_A } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ twisted;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Mt19937;

    #[test]
    fn ten_thousandth_draw_of_the_default_seed_is_the_published_one() {
        // The value that ISO C++ [rand.predef] requires of std::mt19937.
        let mut generator = Mt19937::new(5489);
        let last = (0..10_000).map(|_| generator.next_u32()).last();
        assert_eq!(last, Some(4_123_659_995));
    }

    #[test]
    fn seeds_that_differ_by_a_multiple_of_two_to_the_32_give_the_same_stream() {
        let (mut a, mut b) = (Mt19937::new(7), Mt19937::new(7 + (3 << 32)));
        assert!((0..1000).all(|_| a.next_u32() == b.next_u32()));
    }
}
