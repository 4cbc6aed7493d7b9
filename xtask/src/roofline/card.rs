//! What is known of a card: measured limits, and what an op costs on it. Every number says where it is from.

/// Height and width of a tile.
pub(super) const TILE: usize = 32;

/// What launches cost: a matmul a fixed time and its weight at a rate, any other op a fixed time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OpCost {
    pub(super) name: &'static str,
    /// Fixed time of a matmul of more than two tile rows, and of the DiT's two.
    pub(super) matmul_us: [f64; 2],
    /// Rate at which its weight is read, GB/s, likewise.
    pub(super) weight_gbs: [f64; 2],
    /// Any other op.
    pub(super) other_us: f64,
    /// Upload of the inputs, replays, reading the actions.
    pub(super) host_us: f64,
}

/// A card's limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Card {
    pub(super) name: &'static str,
    /// Rate at which a streaming kernel reads bf16 and bfp8_b weights, GB/s.
    pub(super) bf16_gbs: f64,
    pub(super) bfp8_gbs: f64,
    /// Compute cores: rows take tile rows of the result, columns its tile columns.
    pub(super) grid: [usize; 2],
    pub(super) clock_hz: f64,
    /// Cycles for a product of two tiles at HiFi2, and the share of that rate that tuned matmuls reach.
    pub(super) cycles_per_tile: f64,
    pub(super) matmul_share: f64,
    /// A launch inside a trace, however short its kernel.
    pub(super) launch_us: f64,
    /// From one replay to the next where the host reads and writes between them.
    pub(super) boundary_us: f64,
    /// TTNN's defaults, and what explicit configs and sharded layouts reach.
    pub(super) stock: OpCost,
    pub(super) tuned: OpCost,
    /// Milliseconds of a prediction, measured by others on this card: device alone, and served.
    pub(super) measured_ms: [f64; 2],
}

/// Tenstorrent Blackhole p150a.
pub(super) const P150A: Card = Card {
    name: "p150a",
    bf16_gbs: 464.0,
    bfp8_gbs: 414.0,
    grid: [10, 11],
    clock_hz: 1.35e9,
    cycles_per_tile: 32.0,
    matmul_share: 268.0 / 304.0,
    launch_us: 5.0,
    boundary_us: 20.0,
    stock: OpCost {
        name: "stock",
        matmul_us: [11.0, 10.0],
        weight_gbs: [216.0, 216.0],
        other_us: 12.0,
        host_us: 500.0,
    },
    tuned: OpCost {
        name: "tuned",
        matmul_us: [9.0, 8.0],
        weight_gbs: [350.0, 400.0],
        other_us: 7.0,
        host_us: 300.0,
    },
    measured_ms: [41.7, 45.4],
};

impl Card {
    /// The card of that name.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        if name == P150A.name { Ok(P150A) } else { Err(format!("device {name:?}, wanted {}", P150A.name)) }
    }

    /// What the numbers of this card are and where they are from.
    pub(super) fn assumptions(&self) -> Vec<String> {
        let Self { grid: [rows, columns], stock, tuned, .. } = self;
        let cores = rows * columns;
        let op = |c: &OpCost| {
            let ([m, d], [w, v]) = (c.matmul_us, c.weight_gbs);
            format!(
                "matmul {m} us + weight at {w} GB/s (two tile rows: {d} us, {v} GB/s), any other op {} us, host {} us",
                c.other_us, c.host_us
            )
        };
        vec![
            format!(
                "DRAM: {} GB/s bf16, {} GB/s bfp8_b (streaming kernel of the Python port, measured on a p150a; 512 nominal)",
                self.bf16_gbs, self.bfp8_gbs
            ),
            format!(
                "matmul: {rows}x{columns} = {cores} cores, {} cycles per 32x32x32 at HiFi2 and {} GHz = {:.0} TF/s, of which tuned \
                 matmuls reach {:.0} % (tt-metal's GEMM_FLOPS report, 268 TF/s); a core computes whole tiles",
                self.cycles_per_tile,
                self.clock_hz / 1e9,
                self.peak_flops() / 1e12,
                100.0 * self.matmul_share
            ),
            format!(
                "launch: {} us (tt-metal's traced dispatch benchmark on Blackhole, programs with runtime arguments on all cores: 4.6 \
                 to 5.7 us)",
                self.launch_us
            ),
            format!("stock op: {} (matmul fitted on GEMM_FLOPS at 640 rows; the other op is an estimate)", op(stock)),
            format!("tuned op: {} (likewise; explicit program configs, activations in L1, sharded norms)", op(tuned)),
            format!("between two replays with a read-back: {} us (4 KB to the host take about 15 us)", self.boundary_us),
            "launches: all ops but reshapes; swiglu is two slices and a product, a residual is an add after its matmul".into(),
            "bytes: weights padded to tiles, head widths 72 and 48 padded to 96 and 64; activations bf16, in L1 (161 MB)".into(),
            format!(
                "measured elsewhere: {} ms device, {} ms served (Python port on TTNN, S = 384, mixed_dit); its op list is not public",
                self.measured_ms[0], self.measured_ms[1]
            ),
        ]
    }

    /// HiFi2 rate of the whole grid.
    pub(super) fn peak_flops(&self) -> f64 {
        let [rows, columns] = self.grid;
        let flops_per_tile = 2.0 * (TILE * TILE * TILE) as f64;
        (rows * columns) as f64 * self.clock_hz * flops_per_tile / self.cycles_per_tile
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_reaches_304_teraflops() {
        // GEMM_FLOPS.md: 110 cores at HiFi2
        assert!((P150A.peak_flops() / 304e12 - 1.0).abs() < 0.01, "{}", P150A.peak_flops());
    }

    #[test]
    fn another_card_is_refused() {
        assert!(Card::named("n150").unwrap_err().contains("p150a"));
    }
}
