//! The emulation beside plain Rust, its refusals, and the way of a signal through the handler.

use super::instruction::Memory;
use super::*;
use crate::testing::{needs_amx_emulation, values};
use half::bf16;
use std::arch::asm;
use std::sync::atomic::AtomicI32;

const TILE_BYTES: usize = 1024;

/// A configuration with the rows and bytes of a row of the first tiles.
fn config(tiles: &[(u8, u16)]) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[0] = 1;
    for (tile, (rows, row_bytes)) in tiles.iter().enumerate() {
        bytes[16 + 2 * tile..18 + 2 * tile].copy_from_slice(&row_bytes.to_le_bytes());
        bytes[48 + tile] = *rows;
    }
    bytes
}

/// Runs one instruction whose memory operand is `at`, with rows `stride` bytes apart.
fn run(tiles: &mut Tiles, instruction: Instruction, at: *const u8, stride: usize) -> Result<(), Fault> {
    // SAFETY: each caller passes memory that reaches as far as the configured tile does.
    unsafe { tiles.execute(instruction, &|register| if register == 0 { at as u64 } else { stride as u64 }) }
}

const HERE: Memory = Memory { base: Some(0), index: Some(1), shift: 0, displacement: 0 };

fn configured(tiles: &[(u8, u16)]) -> Tiles {
    let mut state = Tiles::new();
    let bytes = config(tiles);
    run(&mut state, Instruction::LoadConfig(HERE), bytes.as_ptr(), 0).unwrap();
    state
}

/// `c + a b` of tiles with these rows, columns and pairs of k, from and to rows that lie further apart than they are long.
fn product(rows: usize, columns: usize, pairs: usize, a: &[bf16], b: &[bf16], c: &[f32]) -> Vec<f32> {
    const FAR: usize = 80;
    let mut tiles = configured(&[
        (rows as u8, 4 * columns as u16),
        (rows as u8, 4 * pairs as u16),
        (pairs as u8, 4 * columns as u16),
    ]);
    let spread = |bytes: &[u8], row_bytes: usize| {
        let mut out = vec![0xffu8; 16 * FAR];
        for (out, row) in out.chunks_exact_mut(FAR).zip(bytes.chunks_exact(row_bytes)) {
            out[..row_bytes].copy_from_slice(row);
        }
        out
    };
    let operands = [
        spread(bytemuck::cast_slice(c), 4 * columns),
        spread(bytemuck::cast_slice(a), 4 * pairs),
        spread(bytemuck::cast_slice(b), 4 * columns),
    ];
    for (tile, bytes) in operands.iter().enumerate() {
        run(&mut tiles, Instruction::Load { tile, from: HERE }, bytes.as_ptr(), FAR).unwrap();
    }
    run(&mut tiles, Instruction::Dot { sum: 0, a: 1, b: 2 }, std::ptr::null(), 0).unwrap();
    let mut out = vec![0xffu8; 16 * FAR];
    run(&mut tiles, Instruction::Store { tile: 0, to: HERE }, out.as_mut_ptr(), FAR).unwrap();
    let mut stored = Vec::new();
    for (row, bytes) in out.chunks_exact(FAR).enumerate() {
        let kept = if row < rows { 4 * columns } else { 0 };
        let (words, _) = bytes[..kept].as_chunks();
        stored.extend(words.iter().copied().map(f32::from_le_bytes));
        assert!(bytes[kept..].iter().all(|b| *b == 0xff), "row {row} is written past its end");
    }
    stored
}

#[test]
fn a_product_is_that_of_plain_rust_at_every_size() {
    for (rows, columns, pairs) in [(1, 1, 1), (16, 16, 16), (13, 16, 16), (3, 7, 5), (16, 1, 9), (2, 15, 16)]
    {
        // Multiples of 1/8 up to 4: every product and sum is exact, so the order of additions does not matter.
        let eighths =
            |len, seed| values(len, seed).into_iter().map(|v| (v * 8.0).round() / 8.0).collect::<Vec<_>>();
        let a: Vec<bf16> = eighths(rows * pairs * 2, 1).into_iter().map(bf16::from_f32).collect();
        let b: Vec<bf16> = eighths(pairs * columns * 2, 2).into_iter().map(bf16::from_f32).collect();
        let c = eighths(rows * columns, 3);
        let mut want = c.clone();
        for (m, row) in want.chunks_exact_mut(columns).enumerate() {
            for (n, want) in row.iter_mut().enumerate() {
                for k in 0..2 * pairs {
                    let b = b[(k / 2 * columns + n) * 2 + k % 2];
                    *want += a[m * 2 * pairs + k].to_f32() * b.to_f32();
                }
            }
        }
        assert_eq!(
            product(rows, columns, pairs, &a, &b, &c),
            want,
            "{rows} rows, {columns} columns, {pairs} pairs"
        );
    }
}

#[test]
fn even_and_odd_products_are_added_up_apart() {
    // In one sum 2^24 would swallow each 1; in two the ones make 2 first.
    let a = [4096.0, 1.0, 0.0, 1.0].map(bf16::from_f32);
    let b = [4096.0, 1.0, 0.0, 1.0].map(bf16::from_f32);
    assert_eq!(product(1, 1, 2, &a, &b, &[0.0]), [16_777_218.0]);
    // And all of a tile's products before what was there: 1 - 2^24 + 2^24.
    let a = [4096.0, 0.0, -4096.0, 0.0].map(bf16::from_f32);
    let b = [4096.0, 0.0, 4096.0, 0.0].map(bf16::from_f32);
    assert_eq!(product(1, 1, 2, &a, &b, &[1.0]), [1.0]);
}

#[test]
fn subnormal_numbers_are_zeros_on_the_way_in_and_out() {
    let (least, half) = (bf16::MIN_POSITIVE, bf16::from_f32(0.5));
    let subnormal = bf16::from_bits(0x40);
    let zero = bf16::ZERO;
    assert_eq!(product(1, 1, 1, &[subnormal, zero], &[bf16::from_f32(1e30), zero], &[0.0]), [0.0]);
    assert_eq!(product(1, 1, 1, &[least, zero], &[half, zero], &[0.0]), [0.0]);
    assert_eq!(product(1, 1, 1, &[zero, zero], &[zero, zero], &[f32::from_bits(1)]), [0.0]);
    assert_eq!(product(1, 1, 1, &[least, zero], &[bf16::ONE, zero], &[0.0]), [f32::MIN_POSITIVE]);
}

#[test]
fn configurations_that_trap_are_faults() {
    let good = config(&[(16, 64); 8]);
    let changed = |at: usize, to: u8| {
        let mut bytes = good;
        bytes[at] = to;
        bytes
    };
    for (bytes, fault) in [
        (changed(0, 2), "#GP: palette"),
        (changed(1, 3), "start_row is not emulated"),
        (changed(9, 1), "#GP: reserved bytes of the configuration"),
        (changed(48, 17), "#GP: a tile has at most 16 rows of 64 bytes"),
        (changed(16, 65), "#GP: a tile has at most 16 rows of 64 bytes"),
        (changed(49, 0), "#GP: a tile with rows or columns only"),
        (changed(18, 0), "#GP: a tile with rows or columns only"),
        (changed(56, 1), "#GP: there are 8 tiles"),
    ] {
        let mut tiles = Tiles::new();
        let got = run(&mut tiles, Instruction::LoadConfig(HERE), bytes.as_ptr(), 0);
        assert_eq!(got, Err(Fault(fault)));
    }
    let mut tiles = configured(&[(16, 64)]);
    let none = [0u8; 64];
    run(&mut tiles, Instruction::LoadConfig(HERE), none.as_ptr(), 0).unwrap();
    assert_eq!(zero(&mut tiles, 0), Err(Fault("#UD: tiles are not configured")), "palette 0");
}

fn zero(tiles: &mut Tiles, tile: usize) -> Result<(), Fault> {
    run(tiles, Instruction::Zero { tile }, std::ptr::null(), 0)
}

#[test]
fn operands_that_trap_are_faults() {
    let dot = |tiles: &[(u8, u16)], [sum, a, b]: [usize; 3]| {
        run(&mut configured(tiles), Instruction::Dot { sum, a, b }, std::ptr::null(), 0)
    };
    let full = [(16, 64); 3];
    assert_eq!(dot(&full, [0, 1, 2]), Ok(()));
    for (tiles, operands, fault) in [
        (full, [0, 1, 1], "#UD: one tile as two operands"),
        (full, [0, 0, 2], "#UD: one tile as two operands"),
        (full, [2, 1, 2], "#UD: one tile as two operands"),
        (full, [0, 1, 3], "#UD: this tile is not configured"),
        ([(15, 64), (16, 64), (16, 64)], [0, 1, 2], "#UD: sums and the first factor differ in rows"),
        ([(16, 60), (16, 64), (16, 64)], [0, 1, 2], "#UD: sums and the second factor differ in columns"),
        (
            [(16, 64), (16, 64), (15, 64)],
            [0, 1, 2],
            "#UD: columns of the first factor are not the rows of the second",
        ),
        ([(16, 62), (16, 64), (16, 62)], [0, 1, 2], "#UD: rows are not whole words"),
    ] {
        assert_eq!(dot(&tiles, operands), Err(Fault(fault)));
    }
    assert_eq!(zero(&mut Tiles::new(), 0), Err(Fault("#UD: tiles are not configured")));
    let mut released = configured(&full);
    run(&mut released, Instruction::Release, std::ptr::null(), 0).unwrap();
    assert_eq!(zero(&mut released, 0), Err(Fault("#UD: tiles are not configured")));
}

#[test]
fn a_configuration_empties_the_tiles() {
    let mut tiles = configured(&[(16, 64)]);
    let (ones, mut out) = ([1u8; TILE_BYTES], [2u8; TILE_BYTES]);
    run(&mut tiles, Instruction::Load { tile: 0, from: HERE }, ones.as_ptr(), 64).unwrap();
    let bytes = config(&[(16, 64)]);
    run(&mut tiles, Instruction::LoadConfig(HERE), bytes.as_ptr(), 0).unwrap();
    run(&mut tiles, Instruction::Store { tile: 0, to: HERE }, out.as_mut_ptr(), 64).unwrap();
    assert_eq!(out, [0; TILE_BYTES]);
}

#[test]
fn instructions_trap_here_and_are_done_by_the_handler() {
    if !needs_amx_emulation() {
        println!("skipped: this CPU has AMX, or no AVX-512");
        return;
    }
    let done = Counts::of(|| assert!(crate::kernels::amx::known_product_is_right()));
    let want = Counts { configurations: 1, releases: 1, zeros: 0, loads: 4 + 4, stores: 4, products: 4 };
    assert_eq!(done, want);
}

/// How a child that only runs `body` ends: the status of `waitpid`.
fn status_of_child(body: impl FnOnce()) -> libc::c_int {
    // SAFETY: the child runs `body`, which takes no lock, and ends without running destructors; the parent waits for it.
    unsafe {
        match libc::fork() {
            0 => {
                // Its last words would only puzzle the reader of a passing test.
                libc::close(libc::STDERR_FILENO);
                body();
                libc::_exit(0);
            }
            child => {
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                status
            }
        }
    }
}

#[test]
fn what_amx_would_refuse_ends_the_process() {
    if !needs_amx_emulation() {
        println!("skipped: this CPU has AMX, or no AVX-512");
        return;
    }
    // SAFETY: the child owns its registers and ends here.
    let status = status_of_child(|| unsafe { asm!("tilerelease", "tilezero tmm0", out("tmm0") _) });
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGABRT, "{status:#x}");
}

#[test]
fn an_instruction_that_is_not_amx_still_ends_the_process() {
    if !needs_amx_emulation() {
        println!("skipped: this CPU has AMX, or no AVX-512");
        return;
    }
    // SAFETY: the child ends here.
    let status = status_of_child(|| unsafe { asm!("ud2") });
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGILL, "{status:#x}");
}

#[test]
fn other_signals_reach_the_handler_that_was_there() {
    static SEEN: AtomicI32 = AtomicI32::new(0);
    extern "C" fn plain(signal: libc::c_int) {
        SEEN.fetch_add(signal, Ordering::Relaxed);
    }
    extern "C" fn with_info(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        assert!(info.is_null());
        SEEN.fetch_add(1000 * signal, Ordering::Relaxed);
    }
    // SAFETY: a zeroed `sigaction` is a valid one.
    let mut previous: libc::sigaction = unsafe { std::mem::zeroed() };
    previous.sa_sigaction = plain as *const () as usize;
    pass_on(&previous, 4, std::ptr::null_mut(), std::ptr::null_mut());
    previous.sa_sigaction = with_info as *const () as usize;
    previous.sa_flags = libc::SA_SIGINFO;
    pass_on(&previous, 4, std::ptr::null_mut(), std::ptr::null_mut());
    assert_eq!(SEEN.load(Ordering::Relaxed), 4004);
}
