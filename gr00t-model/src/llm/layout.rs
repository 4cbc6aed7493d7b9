//! Where the image tokens of a prompt are.

use std::ops::Range;

/// Runs of image tokens in a sequence that is padded at its end. Image tokens are taken from the image features in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SequenceLayout {
    image_runs: Vec<Range<usize>>,
    sequence: usize,
}

/// A stretch of the sequence: rows of the image features or of the text rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) is_image: bool,
    pub(super) rows: Range<usize>,
}

impl SequenceLayout {
    /// Runs of `image_token` in `ids`, in a sequence padded to `sequence` tokens.
    pub(crate) fn new(ids: &[u32], image_token: u32, sequence: usize) -> Self {
        let mut image_runs: Vec<Range<usize>> = Vec::new();
        for at in ids.iter().enumerate().filter_map(|(at, &id)| (id == image_token).then_some(at)) {
            match image_runs.last_mut() {
                Some(run) if run.end == at => run.end = at + 1,
                _ => image_runs.push(at..at + 1),
            }
        }
        Self { image_runs, sequence: sequence.max(ids.len()) }
    }

    /// Tokens, padding included.
    pub(crate) fn sequence(&self) -> usize {
        self.sequence
    }

    /// Image tokens.
    pub(crate) fn image_tokens(&self) -> usize {
        self.image_runs.iter().map(Range::len).sum()
    }

    /// Text tokens, padding included.
    pub(crate) fn text_tokens(&self) -> usize {
        self.sequence - self.image_tokens()
    }

    /// The sequence as stretches of text rows and image rows.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let (mut pieces, mut at, mut text, mut image) = (Vec::new(), 0, 0, 0);
        for run in &self.image_runs {
            let gap = run.start - at;
            pieces.push(Piece { is_image: false, rows: text..text + gap });
            pieces.push(Piece { is_image: true, rows: image..image + run.len() });
            (text, image, at) = (text + gap, image + run.len(), run.end);
        }
        pieces.push(Piece { is_image: false, rows: text..text + self.sequence - at });
        pieces.retain(|piece| !piece.rows.is_empty());
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: u32 = 9;

    #[test]
    fn pieces_alternate_and_padding_is_text() {
        let layout = SequenceLayout::new(&[1, 9, 9, 2, 3, 9, 4], IMAGE, 10);
        let pieces: Vec<(bool, Range<usize>)> =
            layout.pieces().into_iter().map(|piece| (piece.is_image, piece.rows)).collect();
        assert_eq!(pieces, [(false, 0..1), (true, 0..2), (false, 1..3), (true, 2..3), (false, 3..7)]);
        assert_eq!((layout.image_tokens(), layout.text_tokens(), layout.sequence()), (3, 7, 10));
    }

    #[test]
    fn images_at_both_ends_leave_no_empty_piece() {
        let layout = SequenceLayout::new(&[9, 1, 9], IMAGE, 3);
        assert_eq!(layout.pieces().len(), 3);
        assert_eq!(layout.text_tokens(), 1);
    }
}
