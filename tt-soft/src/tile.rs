//! Tile order: a matrix as 32x32 tiles, each as four 16x16 faces (top left, top right, bottom left, bottom right).

use crate::error::{Error, Result};

/// Side of a tile.
pub const TILE: usize = 32;
/// Side of a face.
pub(crate) const FACE: usize = 16;
/// Elements of a tile.
pub(crate) const TILE_ELEMENTS: usize = TILE * TILE;

/// Where element (row, column) of a tile lies in it.
#[must_use]
pub(crate) fn tile_offset(row: usize, column: usize) -> usize {
    let face = row / FACE * 2 + column / FACE;
    face * FACE * FACE + row % FACE * FACE + column % FACE
}

/// Elements of a matrix of this shape in tile order, padding included.
#[must_use]
pub fn tiled_len(rows: usize, columns: usize) -> usize {
    rows.div_ceil(TILE) * columns.div_ceil(TILE) * TILE_ELEMENTS
}

/// Row-major to tile order; padding becomes `padding`.
///
/// # Errors
/// If `matrix` is not `rows * columns` long or `tiles` not [`tiled_len`].
pub fn tilize<T: Copy>(matrix: &[T], rows: usize, columns: usize, padding: T, tiles: &mut [T]) -> Result<()> {
    check("tilize", matrix.len(), tiles.len(), rows, columns)?;
    let across = columns.div_ceil(TILE);
    for (index, tile) in tiles.chunks_exact_mut(TILE_ELEMENTS).enumerate() {
        let (top, left) = (index / across * TILE, index % across * TILE);
        for row in 0..TILE {
            for column in [0, FACE] {
                let out = &mut tile[tile_offset(row, column)..][..FACE];
                out.fill(padding);
                let (row, column) = (top + row, left + column);
                if row < rows && column < columns {
                    let count = FACE.min(columns - column);
                    out[..count].copy_from_slice(&matrix[row * columns + column..][..count]);
                }
            }
        }
    }
    Ok(())
}

/// Tile order to row-major; padding is dropped.
///
/// # Errors
/// As [`tilize`].
pub fn untilize<T: Copy>(tiles: &[T], rows: usize, columns: usize, matrix: &mut [T]) -> Result<()> {
    check("untilize", matrix.len(), tiles.len(), rows, columns)?;
    let across = columns.div_ceil(TILE);
    for (index, tile) in tiles.chunks_exact(TILE_ELEMENTS).enumerate() {
        let (top, left) = (index / across * TILE, index % across * TILE);
        for row in 0..TILE.min(rows - top) {
            for column in [0, FACE] {
                if left + column < columns {
                    let count = FACE.min(columns - left - column);
                    matrix[(top + row) * columns + left + column..][..count]
                        .copy_from_slice(&tile[tile_offset(row, column)..][..count]);
                }
            }
        }
    }
    Ok(())
}

fn check(op: &'static str, matrix: usize, tiles: usize, rows: usize, columns: usize) -> Result<()> {
    if rows.checked_mul(columns) != Some(matrix) {
        return Err(Error::Shape {
            op,
            what: "matrix length",
            got: vec![matrix],
            wanted: vec![rows, columns],
        });
    }
    if tiles != tiled_len(rows, columns) {
        return Err(Error::Shape {
            op,
            what: "tiles length",
            got: vec![tiles],
            wanted: vec![tiled_len(rows, columns)],
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn faces_lie_in_reading_order() {
        assert_eq!(tile_offset(0, 15), 15);
        assert_eq!(tile_offset(0, 16), 256);
        assert_eq!(tile_offset(16, 0), 512);
        assert_eq!(tile_offset(31, 31), 1023);
        let matrix: Vec<u32> = (0..64 * 32).collect();
        let mut tiles = vec![0; matrix.len()];
        tilize(&matrix, 64, 32, 0, &mut tiles).unwrap();
        assert_eq!(tiles[..3], [0, 1, 2]);
        assert_eq!(tiles[256], 16);
        assert_eq!(tiles[1024], 32 * 32);
    }

    #[test]
    fn wrong_lengths_are_errors() {
        assert!(tilize(&[0u16; 5], 2, 3, 0, &mut [0; 1024]).is_err());
        assert!(untilize(&[0u16; 1024], 33, 1, &mut [0; 33]).is_err());
    }

    proptest! {
        #[test]
        fn untilize_undoes_tilize(rows in 1usize..100, columns in 1usize..100) {
            let matrix: Vec<u32> = (0..(rows * columns) as u32).collect();
            let mut tiles = vec![0; tiled_len(rows, columns)];
            tilize(&matrix, rows, columns, u32::MAX, &mut tiles).unwrap();
            prop_assert_eq!(tiles.iter().filter(|&&v| v == u32::MAX).count(), tiles.len() - matrix.len());
            let mut back = vec![0; matrix.len()];
            untilize(&tiles, rows, columns, &mut back).unwrap();
            prop_assert_eq!(back, matrix);
        }
    }
}
