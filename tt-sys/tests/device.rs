//! The bridge on a device: a card or the functional simulator (`TT_METAL_SIMULATOR`). Built with the feature `metal`; where
//! there is no device each test says that it was skipped.
//!
//! tt-metal keeps one device per process and its simulator ends the process where it cannot go on, so each test runs
//! itself again as a process of its own.
#![cfg(feature = "metal")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::process::Command;
use std::rc::Rc;

use tt_sys::ops::{self, BinaryOp, Linear, Rhs};
use tt_sys::{
    BufferType, DataType, Device, MemoryConfig, OpenOptions, Result, ShardLayout, Shards, TensorSpec,
};

const CHILD: &str = "TT_SYS_TEST_CHILD";

/// Whether there is something to open.
fn device_is_there() -> bool {
    std::env::var_os("TT_METAL_SIMULATOR").is_some() || std::path::Path::new("/dev/tenstorrent").exists()
}

/// Runs `body` in a process of its own that has a device.
fn on_device(test: &str, body: fn(&Device) -> Result<()>) {
    if std::env::var_os(CHILD).is_some() {
        let device =
            Device::open(OpenOptions { trace_region_size: 16 << 20, ..OpenOptions::default() }).unwrap();
        body(&device).unwrap();
        return;
    }
    if !device_is_there() {
        println!("skipped: no card, and TT_METAL_SIMULATOR is not set");
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}\n{errors}", output.status);
    assert!(text.contains("1 passed"), "{text}");
}

fn ramp(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i % 31) as f32 / 16.0 - 1.0).collect()
}

#[test]
fn a_device_says_what_it_is() {
    on_device("a_device_says_what_it_is", |device| {
        let facts = device.facts()?;
        assert_eq!(facts.arch, "blackhole");
        assert!(facts.grid.0 >= 11 && facts.grid.1 >= 10, "{facts:?}");
        assert_eq!(facts.dram_banks, 8);
        let used = device.memory_use(BufferType::Dram)?;
        assert_eq!(used.total_per_bank, facts.dram_bank_bytes);
        Ok(())
    });
}

#[test]
fn values_come_back_in_every_data_type_and_layout() {
    on_device("values_come_back_in_every_data_type_and_layout", |device| {
        let values: Vec<f32> = (0..2 * 40 * 50).map(|i| (i % 64) as f32 - 32.0).collect();
        for dtype in [DataType::Bfloat16, DataType::Float32, DataType::Bfloat8B] {
            let tensor = device.from_floats(&TensorSpec::tiles(&[1, 2, 40, 50], dtype), &values)?;
            assert_eq!(tensor.to_floats()?, values, "{dtype:?}");
        }
        let rows = device.from_floats(&TensorSpec::rows(&[1, 2, 40, 50], DataType::Float32), &values)?;
        assert_eq!(rows.to_floats()?, values);
        let blocks = device.from_floats(&TensorSpec::tiles(&[1, 2, 40, 50], DataType::Bfloat4B), &values)?;
        assert!(blocks.to_floats()?.iter().zip(&values).all(|(a, b)| (a - b).abs() <= 4.0));
        let ids: Vec<u32> = (0..60).collect();
        let tensor = device.from_u32(&TensorSpec::rows(&[3, 20], DataType::Uint32), &ids)?;
        let mut back = vec![0; 60];
        tensor.read_u32(&mut back)?;
        assert_eq!(back, ids);
        let signed = device.from_i32(&TensorSpec::rows(&[2, 8], DataType::Int32), &[-3; 16])?;
        let mut back = vec![0; 16];
        signed.read_i32(&mut back)?;
        assert_eq!(back, [-3; 16]);
        Ok(())
    });
}

#[test]
fn shards_go_and_come_back() {
    on_device("shards_go_and_come_back", |device| {
        let x =
            device.from_floats(&TensorSpec::tiles(&[1, 1, 64, 256], DataType::Float32), &ramp(64 * 256))?;
        for (layout, grid, shape) in [
            (ShardLayout::Height, (2, 1), (32, 256)),
            (ShardLayout::Width, (4, 2), (64, 32)),
            (ShardLayout::Block, (4, 2), (32, 64)),
        ] {
            let place = MemoryConfig::sharded(Shards { layout, grid, shape });
            let sharded = ops::to_memory_config(&x, DataType::Float32, place)?;
            assert_eq!(sharded.spec()?.memory_config, place);
            assert_eq!(sharded.to_floats()?, x.to_floats()?, "{layout:?}");
        }
        let none = Shards { layout: ShardLayout::Width, grid: (0, 2), shape: (64, 32) };
        let error = ops::to_memory_config(&x, DataType::Float32, MemoryConfig::sharded(none)).unwrap_err();
        assert_eq!(error.to_string(), "shards on no core");
        Ok(())
    });
}

#[test]
fn floats_are_rounded_to_nearest_even() {
    on_device("floats_are_rounded_to_nearest_even", |device| {
        // Halfway between two bfloat16 numbers, and a little more.
        let (tie, above) = (f32::from_bits(0x3f80_8000), f32::from_bits(0x3f80_8001));
        let tensor = device.from_floats(&TensorSpec::tiles(&[1, 2], DataType::Bfloat16), &[tie, above])?;
        assert_eq!(tensor.to_floats()?, [1.0, f32::from_bits(0x3f81_0000)]);
        Ok(())
    });
}

#[test]
fn a_write_keeps_the_address() {
    on_device("a_write_keeps_the_address", |device| {
        let tensor = device.allocate(&TensorSpec::tiles(&[1, 1, 32, 64], DataType::Bfloat16))?;
        let address = tensor.address()?;
        for value in [1.0, -2.0] {
            tensor.write_floats(&[value; 32 * 64])?;
            assert_eq!(tensor.to_floats()?, [value; 32 * 64]);
        }
        assert_eq!(tensor.address()?, address);
        assert!(tensor.write_floats(&[1.0; 3]).is_err());
        Ok(())
    });
}

#[test]
fn a_trace_of_matmuls_replays_with_new_inputs() {
    on_device("a_trace_of_matmuls_replays_with_new_inputs", |device| {
        let x =
            device.from_floats(&TensorSpec::tiles(&[1, 1, 32, 64], DataType::Bfloat16), &[0.0; 32 * 64])?;
        let w =
            device.from_floats(&TensorSpec::tiles(&[1, 1, 64, 32], DataType::Bfloat8B), &[0.5; 64 * 32])?;
        let run = || {
            let y = ops::linear(&x, &w, &Linear::new(DataType::Bfloat16))?;
            ops::binary(BinaryOp::Add, &y, Rhs::Scalar(1.0), &ops::Binary::new(DataType::Float32))
        };
        drop(run()?);
        let trace = device.begin_trace()?;
        let y = run()?;
        trace.end()?;
        for value in [1.0, 3.0] {
            x.write_floats(&[value; 32 * 64])?;
            trace.execute(true)?;
            assert_eq!(y.to_floats()?, [32.0 * value + 1.0; 32 * 32]);
        }
        assert!(device.trace_region_use()?.allocated_per_bank > 0);
        Ok(())
    });
}

/// Operations have temporaries of their own (here the rows between tiles), whose memory is free after the capture.
#[test]
fn a_replay_writes_into_nothing_that_was_made_after_the_capture() {
    on_device("a_replay_writes_into_nothing_that_was_made_after_the_capture", |device| {
        const DRAM: MemoryConfig = MemoryConfig::DRAM;
        let x = device
            .from_floats(&TensorSpec::tiles(&[1, 1, 96, 64], DataType::Float32), &vec![1.0; 96 * 64])?;
        let run = || ops::slice(&x, &[0, 0, 33, 0], &[1, 1, 90, 64], &[1; 4], DRAM);
        drop(run()?);
        let trace = device.begin_trace()?;
        let kept = run()?;
        trace.end()?;
        let later = (0..32)
            .map(|_| ops::binary(BinaryOp::Add, &x, Rhs::Scalar(1.0), &ops::Binary::new(DataType::Float32)))
            .collect::<Result<Vec<_>>>()?;
        trace.execute(true)?;
        assert_eq!(kept.to_floats()?, [1.0; 57 * 64]);
        for tensor in &later {
            assert_eq!(tensor.to_floats()?, vec![2.0; 96 * 64]);
        }
        drop(trace);
        Ok(())
    });
}

#[test]
fn what_ttnn_refuses_is_an_error_in_one_line_and_the_device_goes_on() {
    on_device("what_ttnn_refuses_is_an_error_in_one_line_and_the_device_goes_on", |device| {
        let a =
            device.from_floats(&TensorSpec::tiles(&[1, 1, 32, 64], DataType::Bfloat16), &ramp(32 * 64))?;
        let error = ops::linear(&a, &a, &Linear::new(DataType::Bfloat16)).unwrap_err();
        assert!(!error.to_string().contains('\n') && error.to_string().contains("height"), "{error}");
        assert!(error.debug().contains("TT_FATAL"), "{}", error.debug());
        let sum = ops::binary(BinaryOp::Add, &a, Rhs::Tensor(&a), &ops::Binary::new(DataType::Bfloat16))?;
        assert_eq!(sum.to_floats()?[1], 2.0 * ramp(2)[1]);
        Ok(())
    });
}

#[test]
fn handles_outlive_the_device_in_any_order() {
    on_device("handles_outlive_the_device_in_any_order", |device| {
        let spec = TensorSpec::tiles(&[1, 1, 32, 32], DataType::Bfloat16);
        let first = device.from_floats(&spec, &ramp(1024))?;
        let view = ops::reshape(&first, &[1, 1, 1024, 1], MemoryConfig::DRAM)?;
        let kept = Rc::new(device.from_floats(&spec, &ramp(1024))?);
        drop(first);
        assert_eq!(view.to_floats()?, {
            let values = device.from_floats(&spec, &ramp(1024))?;
            values.to_floats()?
        });
        kept.deallocate()?;
        kept.deallocate()?;
        assert!(!kept.is_allocated() && kept.to_floats().is_err());
        device.close()?;
        device.close()?;
        assert!(!device.is_open());
        let error = view.to_floats().unwrap_err();
        assert!(error.to_string().contains("closed"), "{error}");
        assert!(device.from_floats(&spec, &ramp(1024)).is_err());
        Ok(())
    });
}

#[test]
fn memory_comes_back_when_handles_are_dropped() {
    on_device("memory_comes_back_when_handles_are_dropped", |device| {
        let before = device.memory_use(BufferType::Dram)?.allocated_per_bank;
        let spec = TensorSpec::tiles(&[1, 8, 256, 256], DataType::Float32);
        let tensors = (0..4).map(|_| device.allocate(&spec)).collect::<Result<Vec<_>>>()?;
        let during = device.memory_use(BufferType::Dram)?.allocated_per_bank;
        assert!(during >= before + 4 * (8 * 256 * 256 * 4) / 8, "{before} {during}");
        drop(tensors);
        assert_eq!(device.memory_use(BufferType::Dram)?.allocated_per_bank, before);
        Ok(())
    });
}

#[test]
fn a_file_holds_the_packed_tensor() {
    on_device("a_file_holds_the_packed_tensor", |device| {
        let path = std::env::temp_dir().join(format!("tt-sys-{}.tensorbin", std::process::id()));
        let name = path.to_str().unwrap();
        let weights =
            device.from_floats(&TensorSpec::tiles(&[1, 1, 64, 96], DataType::Bfloat8B), &ramp(64 * 96))?;
        weights.dump(name)?;
        let size = std::fs::metadata(&path).unwrap().len();
        let loaded = device.load(name);
        std::fs::remove_file(&path).unwrap();
        let loaded = loaded?;
        assert_eq!(loaded.spec()?, weights.spec()?);
        assert_eq!(loaded.to_floats()?, weights.to_floats()?);
        // Six tiles of 1088 bytes, and a header.
        assert!((6 * 1088..6 * 1088 + 4096).contains(&size), "{size}");
        Ok(())
    });
}

#[test]
fn a_query_says_what_a_matmul_needs() {
    on_device("a_query_says_what_a_matmul_needs", |device| {
        let x = device.allocate(&TensorSpec::tiles(&[1, 1, 512, 1536], DataType::Bfloat16))?;
        let w = device.allocate(&TensorSpec::tiles(&[1, 1, 1536, 1536], DataType::Bfloat8B))?;
        let (y, needs) = device.query(|| ops::linear(&x, &w, &Linear::new(DataType::Bfloat16)))?;
        assert_eq!(y.spec()?.shape, [1, 1, 512, 1536]);
        assert!((1..1 << 20).contains(&needs.circular_buffers), "{needs:?}");
        Ok(())
    });
}
