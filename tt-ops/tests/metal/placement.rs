//! Shards, core grids and program configs that an op is told, on the card: the same values as without.

use tt_ops::ops::{self, LayerNorm, Linear, RmsNorm, Sdpa};
use tt_ops::{
    Bfloat16, CoreGrid, DataType, Device, Float32, MatmulBlocks, MatmulProgramConfig, MemoryConfig, Metal,
    Result, SdpaProgramConfig, ShardSpec, Tensor, TensorMemoryLayout, Weight,
};

use super::trace::on_device;

const ROWS: usize = 49;
const WIDTH: usize = 512;

fn ramp(len: usize, step: usize) -> Vec<f32> {
    (0..len).map(|i| (i * step % 193) as f32 / 96.0 - 1.0).collect()
}

fn stream(device: &Metal) -> Result<Tensor<Metal, Float32>> {
    Tensor::from_span(device, [1, ROWS, WIDTH], &ramp(ROWS * WIDTH, 7)[..])
}

fn square(device: &Metal) -> Result<Weight<Metal>> {
    Weight::from_out_in(device, WIDTH, WIDTH, DataType::Bfloat8B, &ramp(WIDTH * WIDTH, 11)[..])
}

fn assert_near(got: &[f32], wanted: &[f32]) {
    let squares =
        |values: &mut dyn Iterator<Item = f32>| values.map(|v| f64::from(v * v)).sum::<f64>().sqrt();
    let off = squares(&mut got.iter().zip(wanted).map(|(a, b)| a - b)) / squares(&mut wanted.iter().copied());
    assert!(off < 5e-3, "relative rms {off}");
}

#[test]
fn a_stream_in_shards_has_the_values_of_one_in_dram() {
    on_device("placement::a_stream_in_shards_has_the_values_of_one_in_dram", |device| {
        let (x, w) = (stream(device)?, square(device)?);
        let gain = Tensor::<_, Float32>::from_span(device, [WIDTH], &ramp(WIDTH, 3)[..])?;
        let block = |place: MemoryConfig| -> Result<_> {
            let x = ops::to_memory_config(&x, place)?;
            let n: Tensor<_, Bfloat16> = ops::layer_norm(&x, LayerNorm::new(1e-5).weight(&gain).bias(&gain))?;
            let x: Tensor<_, Float32> = ops::linear(&n, &w, Linear::new().residual(&x))?;
            assert_eq!(x.spec().memory_config, place);
            let n: Tensor<_, Bfloat16> = ops::rms_norm(&x, RmsNorm::new(1e-6).weight(&gain))?;
            let y: Tensor<_, Float32> = ops::add(&x, &ops::typecast::<_, _, Float32>(&n)?)?;
            Ok((n, y))
        };
        let wanted = block(MemoryConfig::DRAM)?;
        let explicit = ShardSpec { grid: CoreGrid::new(4, 2), shape: [64, 64] };
        for place in [
            MemoryConfig::L1_WIDTH_SHARDED,
            MemoryConfig::sharded(TensorMemoryLayout::WidthSharded, explicit),
        ] {
            let (_, needs) = device.query(|| ops::to_memory_config(&x, place))?;
            assert!(needs.l1_buffers > 0, "nothing is in L1");
            let eager = block(place)?;
            let trace = device.capture(|_| block(place))?;
            trace.replay()?;
            for (n, y) in [&eager, trace.outputs()] {
                assert_near(&n.to_vector::<f32>()?, &wanted.0.to_vector::<f32>()?);
                assert_near(&y.to_vector::<f32>()?, &wanted.1.to_vector::<f32>()?);
            }
        }
        Ok(())
    });
}

#[test]
fn a_program_that_was_asked_for_is_the_one_that_runs() {
    on_device("placement::a_program_that_was_asked_for_is_the_one_that_runs", |device| {
        let (x, w) = (stream(device)?, square(device)?);
        let product = |args: Linear<'_, Metal, Float32>| ops::linear(&x, &w, args);
        let wanted = product(Linear::new())?.to_vector::<f32>()?;
        let blocks = MatmulBlocks {
            compute_with_storage_grid_size: CoreGrid::new(4, 2),
            in0_block_w: 4,
            out_subblock_h: 1,
            out_subblock_w: 2,
            per_core_m: 2,
            per_core_n: 2,
        };
        let given = MatmulProgramConfig::MultiCast1D(blocks);
        assert_near(&product(Linear::new().program_config(given))?.to_vector::<f32>()?, &wanted);
        assert_near(&product(Linear::new().core_grid(CoreGrid::new(2, 2)))?.to_vector::<f32>()?, &wanted);
        // It is TTNN that refuses a program that cannot be, so it is the one that was to run.
        let given = MatmulProgramConfig::MultiCast1D(MatmulBlocks { in0_block_w: 5, ..blocks });
        let error = product(Linear::new().program_config(given)).map(drop).unwrap_err().to_string();
        assert!(error.contains("divisible by in0_block_w"), "{error}");
        let error = product(Linear::new().core_grid(CoreGrid::new(99, 1))).map(drop).unwrap_err().to_string();
        assert!(error.contains("a core grid of 99×1"), "{error}");
        let q = Tensor::<_, Bfloat16>::from_span(device, [1, 2, 64, 64], &ramp(2 * 64 * 64, 5)[..])?;
        let attend = |args: Sdpa<'_, Metal>| ops::scaled_dot_product_attention(&q, &q, &q, args);
        let given = SdpaProgramConfig {
            compute_with_storage_grid_size: CoreGrid::new(2, 1),
            q_chunk_size: 64,
            k_chunk_size: 32,
        };
        let got = attend(Sdpa::new().program_config(given))?.to_vector::<f32>()?;
        assert_near(&got, &attend(Sdpa::new())?.to_vector::<f32>()?);
        Ok(())
    });
}

#[test]
fn norms_of_shards_are_those_of_rows_whatever_their_width() {
    on_device("placement::norms_of_shards_are_those_of_rows_whatever_their_width", |device| {
        for width in [48, 96, 256] {
            let values = ramp(ROWS * width, 7);
            let x = Tensor::<_, Float32>::from_span(device, [1, ROWS, width], &values[..])?;
            let norms = |x: &Tensor<Metal, Float32>| -> Result<[Vec<f32>; 2]> {
                let a: Tensor<_, Float32> = ops::layer_norm(x, LayerNorm::new(1e-5))?;
                let b: Tensor<_, Bfloat16> = ops::rms_norm(x, RmsNorm::new(1e-6))?;
                Ok([a.to_vector()?, b.to_vector()?])
            };
            let wanted = norms(&x)?;
            let columns = width.next_multiple_of(32) as u32;
            let explicit = ShardSpec { grid: CoreGrid::new(1, 1), shape: [64, columns] };
            for place in [
                MemoryConfig::L1_WIDTH_SHARDED,
                MemoryConfig::sharded(TensorMemoryLayout::WidthSharded, explicit),
            ] {
                let got = norms(&ops::to_memory_config(&x, place)?)?;
                assert_near(&got[0], &wanted[0]);
                assert_near(&got[1], &wanted[1]);
            }
        }
        Ok(())
    });
}

#[test]
fn every_layout_of_shards_takes_results_and_gives_them_back() {
    on_device("placement::every_layout_of_shards_takes_results_and_gives_them_back", |device| {
        use TensorMemoryLayout::{BlockSharded, HeightSharded, WidthSharded};
        let (x, w) = (stream(device)?, square(device)?);
        let values = x.to_vector::<f32>()?;
        let wanted = ops::linear::<_, _, Float32>(&x, &w, Linear::new())?.to_vector::<f32>()?;
        for (layout, x_cores, y_cores, shape) in [
            (HeightSharded, 2, 1, [32, 512]),
            (WidthSharded, 4, 2, [64, 64]),
            (BlockSharded, 4, 2, [32, 128]),
        ] {
            let shards = ShardSpec { grid: CoreGrid::new(x_cores, y_cores), shape };
            let place = MemoryConfig::sharded(layout, shards);
            let moved = ops::to_memory_config(&x, place)?;
            assert_eq!(moved.to_vector::<f32>()?, values, "{layout:?}");
            let product = ops::linear::<_, _, Float32>(&moved, &w, Linear::new().memory_config(place))?;
            assert_near(&product.to_vector::<f32>()?, &wanted);
        }
        Ok(())
    });
}
