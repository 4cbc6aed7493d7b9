//! Placements, core grids and program configs: recorded by every device, refused where they cannot be, and of no consequence to
//! the software device's bytes.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use tt_ops::ops::{self, LayerNorm, Linear, Sdpa};
use tt_ops::{
    Bfloat16, CoreGrid, DataType, Device, Float32, MatmulBlocks, MatmulProgramConfig, MemoryConfig, Result,
    SdpaProgramConfig, ShardSpec, Soft, Tensor, TensorMemoryLayout, Weight,
};

const ROWS: usize = 49;
const WIDTH: usize = 128;

fn device() -> Soft {
    Soft::builder().threads(1).open().unwrap()
}

fn stream(device: &Soft) -> Result<Tensor<Soft, Float32>> {
    let values: Vec<f32> = (0..ROWS * WIDTH).map(|i| (i * 7 % 97) as f32 / 48.0 - 1.0).collect();
    Tensor::from_span(device, [1, ROWS, WIDTH], &values[..])
}

fn weight(device: &Soft) -> Result<Weight<Soft>> {
    let values: Vec<f32> = (0..WIDTH * WIDTH).map(|i| (i * 11 % 89) as f32 / 44.0 - 1.0).collect();
    Weight::from_out_in(device, WIDTH, WIDTH, DataType::Bfloat16, &values[..])
}

fn width(x: u32, y: u32, shape: [u32; 2]) -> MemoryConfig {
    let shards = ShardSpec { grid: CoreGrid::new(x, y), shape };
    MemoryConfig::sharded(TensorMemoryLayout::WidthSharded, shards)
}

#[test]
fn a_residual_stream_stays_where_it_is_and_has_the_same_bytes() -> Result<()> {
    let device = device();
    let (x, w) = (stream(&device)?, weight(&device)?);
    let block = |place: Option<MemoryConfig>| -> Result<_> {
        let x = place.map_or_else(|| Ok(x.clone()), |place| ops::to_memory_config(&x, place))?;
        let n: Tensor<_, Bfloat16> = ops::layer_norm(&x, LayerNorm::new(1e-5))?;
        let y: Tensor<_, Float32> = ops::linear(&n, &w, Linear::new().residual(&x))?;
        Ok((n.spec().memory_config, y))
    };
    let (_, plain) = block(None)?;
    for place in [MemoryConfig::L1_WIDTH_SHARDED, width(2, 2, [64, 32])] {
        let (norm, y) = block(Some(place))?;
        assert_eq!((norm, y.spec().memory_config), (MemoryConfig::DRAM, place));
        assert_eq!(y.to_vector::<f32>()?, plain.to_vector::<f32>()?);
    }
    Ok(())
}

#[test]
fn what_an_op_is_told_is_recorded() -> Result<()> {
    let device = device();
    let (x, w) = (stream(&device)?, weight(&device)?);
    let trace = device.capture(|_| -> Result<Tensor<_, Float32>> {
        ops::linear(&x, &w, Linear::new().core_grid(CoreGrid::new(4, 2)))
    })?;
    let recorded = serde_json::to_value(&trace.ops().ops[0]).unwrap().to_string();
    assert!(recorded.contains(r#""core_grid":{"x":4,"y":2}"#), "{recorded}");
    assert!(!recorded.contains("program_config"), "{recorded}");
    Ok(())
}

#[test]
fn shards_that_cannot_hold_the_tensor_are_refused() -> Result<()> {
    let device = device();
    let x = stream(&device)?;
    let rows = MemoryConfig { memory_layout: TensorMemoryLayout::Interleaved, ..width(4, 1, [64, 32]) };
    let block = MemoryConfig { memory_layout: TensorMemoryLayout::BlockSharded, ..width(2, 1, [32, 64]) };
    for (place, wanted) in [
        (rows, "got shards of an interleaved tensor, wanted a sharded layout"),
        (width(0, 1, [64, 32]), "wanted at least one core, and multiples of 32"),
        (width(4, 1, [64, 24]), "wanted at least one core, and multiples of 32"),
        (width(3, 1, [64, 32]), "wanted as many as cover 64 rows and 128 columns"),
        (width(4, 1, [32, 32]), "wanted as many as cover 64 rows and 128 columns"),
        (block, "wanted as many as cover 64 rows and 128 columns"),
        (
            MemoryConfig {
                memory_layout: TensorMemoryLayout::HeightSharded,
                ..MemoryConfig::L1_WIDTH_SHARDED
            },
            "got HeightSharded without shards, wanted a shard spec",
        ),
        (width(u32::MAX, u32::MAX, [64, 32]), "wanted at most 65536 cores"),
    ] {
        let error = ops::to_memory_config(&x, place).unwrap_err().to_string();
        assert!(error.contains("to_memory_config") && error.contains(wanted), "{error}");
    }
    ops::to_memory_config(&x, width(4, 1, [64, 32]))?;
    Ok(())
}

#[test]
fn programs_that_cannot_be_are_refused() -> Result<()> {
    let device = device();
    let (x, w) = (stream(&device)?, weight(&device)?);
    let grid = CoreGrid::new(2, 2);
    let blocks = MatmulBlocks {
        compute_with_storage_grid_size: grid,
        in0_block_w: 1,
        out_subblock_h: 1,
        out_subblock_w: 1,
        per_core_m: 2,
        per_core_n: 1,
    };
    let given = Linear::new().program_config(MatmulProgramConfig::MultiCast1D(blocks));
    ops::linear::<_, _, Float32>(&x, &w, given)?;
    let both = Linear::new().program_config(MatmulProgramConfig::MultiCast1D(blocks)).core_grid(grid);
    let error = ops::linear::<_, _, Float32>(&x, &w, both).unwrap_err().to_string();
    assert!(error.contains("got a program config and a core grid, wanted one of them"), "{error}");
    let none = MatmulProgramConfig::MultiCast(MatmulBlocks { in0_block_w: 0, ..blocks });
    let error =
        ops::linear::<_, _, Float32>(&x, &w, Linear::new().program_config(none)).unwrap_err().to_string();
    assert!(error.contains("wanted at least 1 each"), "{error}");
    let none = Linear::new().core_grid(CoreGrid::new(0, 4));
    let error = ops::linear::<_, _, Float32>(&x, &w, none).unwrap_err().to_string();
    assert!(error.contains("got a core grid of 0×4, wanted at least one core"), "{error}");
    let q = Tensor::<_, Bfloat16>::zeros(&device, [1, 1, 32, 32])?;
    for chunks in [(0, 32), (32, 48)] {
        let config = SdpaProgramConfig {
            compute_with_storage_grid_size: grid,
            q_chunk_size: chunks.0,
            k_chunk_size: chunks.1,
        };
        let attended = ops::scaled_dot_product_attention(&q, &q, &q, Sdpa::new().program_config(config));
        assert!(attended.unwrap_err().to_string().contains("wanted multiples of 32"));
    }
    Ok(())
}
