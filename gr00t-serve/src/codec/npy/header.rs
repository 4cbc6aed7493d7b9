//! The header of a `.npy` file: a Python dict of `descr`, `fortran_order` and `shape`, in any order.

use super::super::array::Array;
use super::super::dtype::Descr;
use super::super::error::{CodecError, Result};

/// Room that `numpy.save` leaves for the first dimension to grow: 21 digits less those that it has.
const GROWTH_DIGITS: usize = 21;

pub(super) struct Header {
    pub(super) descr: Descr,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
}

impl Header {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|_| bad("is not text"))?;
        let mut reader = Reader { rest: text };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        reader.wanted('{')?;
        while !reader.accept('}') {
            let key = reader.string()?;
            reader.wanted(':')?;
            let again = match key {
                "descr" => descr.replace(reader.descr()?).is_some(),
                "fortran_order" => fortran_order.replace(reader.boolean()?).is_some(),
                "shape" => shape.replace(reader.tuple()?).is_some(),
                _ => return Err(bad("has a key other than descr, fortran_order and shape")),
            };
            if again {
                return Err(bad(&format!("has {key} twice")));
            }
            if !reader.accept(',') {
                reader.wanted('}')?;
                break;
            }
        }
        if !reader.rest.trim().is_empty() {
            return Err(bad("goes on after its dict"));
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Self { descr, fortran_order, shape }),
            _ => Err(bad("lacks descr, fortran_order or shape")),
        }
    }

    /// The dict that `numpy.save` writes, without padding to the alignment.
    pub(super) fn write(array: &Array) -> String {
        let shape = match array.shape() {
            [one] => format!("({one},)"),
            many => format!("({})", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        };
        let descr = array.dtype().descr();
        let growth =
            array.shape().first().map_or(0, |first| GROWTH_DIGITS.saturating_sub(first.to_string().len()));
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}{:growth$}", "")
    }
}

fn bad(what: &str) -> CodecError {
    CodecError::Array(format!("npy header {what}"))
}

/// What is left of the header's text.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn accept(&mut self, wanted: char) -> bool {
        let rest = self.rest.trim_start();
        self.rest = rest.strip_prefix(wanted).unwrap_or(rest);
        self.rest.len() != rest.len()
    }

    fn wanted(&mut self, wanted: char) -> Result<()> {
        if self.accept(wanted) { Ok(()) } else { Err(bad(&format!("lacks a {wanted:?}"))) }
    }

    /// A string without escapes, in either kind of quotes.
    fn string(&mut self) -> Result<&'a str> {
        let quote = if self.accept('\'') {
            '\''
        } else if self.accept('"') {
            '"'
        } else {
            return Err(bad("lacks a string"));
        };
        let (text, rest) = self.rest.split_once(quote).ok_or_else(|| bad("has a string without an end"))?;
        if text.contains('\\') {
            return Err(bad("has a string with a backslash"));
        }
        self.rest = rest;
        Ok(text)
    }

    fn descr(&mut self) -> Result<Descr> {
        if self.accept('[') {
            return Err(bad("has a structured descr, wanted one dtype"));
        }
        Descr::parse(self.string()?)
    }

    fn boolean(&mut self) -> Result<bool> {
        let rest = self.rest.trim_start();
        if let Some(rest) = rest.strip_prefix("True") {
            self.rest = rest;
            Ok(true)
        } else if let Some(rest) = rest.strip_prefix("False") {
            self.rest = rest;
            Ok(false)
        } else {
            Err(bad("has a fortran_order that is neither True nor False"))
        }
    }

    /// A tuple of lengths; Python 2 wrote them with an `L`.
    fn tuple(&mut self) -> Result<Vec<usize>> {
        self.wanted('(')?;
        let mut shape = Vec::new();
        while !self.accept(')') {
            let rest = self.rest.trim_start();
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = rest.split_at(digits);
            shape.push(number.parse().map_err(|_| bad("has a shape that is no tuple of lengths"))?);
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.accept(',') {
                self.wanted(')')?;
                break;
            }
        }
        Ok(shape)
    }
}
