//! Columns of numbers from a parquet file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;

/// Most rows and most numbers of a column: hours of an episode. A file of some bytes can declare any number of them.
const MAX_ROWS: i64 = 1 << 21;
const MAX_NUMBERS: usize = 1 << 27;

/// A column, one row per time step, all of one width.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    width: usize,
    numbers: Numbers,
}

/// Numbers in the precision that they were recorded in.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
}

/// The columns `names` of the file at `path`.
///
/// # Errors
/// If it cannot be read, a column is missing, or one holds anything but rows of as many numbers.
pub(super) fn columns(path: &Path, names: &BTreeSet<String>) -> Result<BTreeMap<String, Column>> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let rows = reader.metadata().file_metadata().num_rows();
    if !(1..=MAX_ROWS).contains(&rows) {
        bail!("{rows} rows, wanted 1 to {MAX_ROWS}");
    }
    let schema = reader.metadata().file_metadata().schema();
    let present: Vec<_> = schema.get_fields().iter().filter(|f| names.contains(f.name())).cloned().collect();
    if let Some(missing) = names.iter().find(|name| !present.iter().any(|f| f.name() == name.as_str())) {
        let known: Vec<&str> = schema.get_fields().iter().map(|field| field.name()).collect();
        bail!("no column {missing}, it has {}", known.join(", "));
    }
    let projection = Type::group_type_builder(schema.name()).with_fields(present).build()?;
    let mut columns: BTreeMap<String, Column> = BTreeMap::new();
    for (number, row) in reader.get_row_iter(Some(projection))?.enumerate() {
        for (name, field) in row?.get_column_iter() {
            let place = || format!("column {name}, row {number}");
            if let Some(column) = columns.get_mut(name) {
                column.push(field).with_context(place)?;
            } else {
                columns.insert(name.clone(), Column::first(field).with_context(place)?);
            }
        }
    }
    match columns.iter().find(|(_, column)| column.rows() as i64 != rows) {
        Some((name, column)) => bail!("column {name} has {} rows, the file says {rows}", column.rows()),
        None if columns.len() != names.len() => bail!("a column is named twice"),
        None => Ok(columns),
    }
}

impl Column {
    /// A column that begins with `field`.
    fn first(field: &Field) -> Result<Self> {
        let elements = elements(field);
        let numbers = match elements.first() {
            Some(Field::Float(_)) => Numbers::F32(Vec::new()),
            Some(Field::Double(_)) => Numbers::F64(Vec::new()),
            Some(_) => Numbers::I64(Vec::new()),
            None => bail!("an empty list"),
        };
        let mut column = Self { width: elements.len(), numbers };
        column.push(field)?;
        Ok(column)
    }

    fn push(&mut self, field: &Field) -> Result<()> {
        let elements = elements(field);
        if elements.len() != self.width {
            bail!("{} numbers, the rows before have {}", elements.len(), self.width);
        }
        if self.numbers.len() > MAX_NUMBERS {
            bail!("more than {MAX_NUMBERS} numbers, the most that is read");
        }
        for element in elements {
            match (&mut self.numbers, element) {
                (Numbers::F32(numbers), Field::Float(v)) => numbers.push(*v),
                (Numbers::F64(numbers), Field::Double(v)) => numbers.push(*v),
                (Numbers::I64(numbers), Field::Bool(v)) => numbers.push(i64::from(*v)),
                (Numbers::I64(numbers), Field::Byte(v)) => numbers.push(i64::from(*v)),
                (Numbers::I64(numbers), Field::Short(v)) => numbers.push(i64::from(*v)),
                (Numbers::I64(numbers), Field::Int(v)) => numbers.push(i64::from(*v)),
                (Numbers::I64(numbers), Field::Long(v)) => numbers.push(*v),
                (Numbers::I64(numbers), Field::UByte(v)) => numbers.push(i64::from(*v)),
                (Numbers::I64(numbers), Field::UShort(v)) => numbers.push(i64::from(*v)),
                (Numbers::I64(numbers), Field::UInt(v)) => numbers.push(i64::from(*v)),
                (_, other) => bail!("{other} where a number as in the rows before was wanted"),
            }
        }
        Ok(())
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.numbers.len() / self.width
    }

    /// Numbers per row, 1 or more.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// All numbers, row after row.
    pub(super) fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// All numbers as f64, row after row.
    pub(super) fn to_f64(&self) -> Vec<f64> {
        match &self.numbers {
            Numbers::F32(numbers) => numbers.iter().map(|&v| f64::from(v)).collect(),
            Numbers::F64(numbers) => numbers.clone(),
            Numbers::I64(numbers) => numbers.iter().map(|&v| v as f64).collect(),
        }
    }
}

impl Numbers {
    fn len(&self) -> usize {
        match self {
            Self::F32(numbers) => numbers.len(),
            Self::F64(numbers) => numbers.len(),
            Self::I64(numbers) => numbers.len(),
        }
    }
}

/// The elements of a list; a lone value is a list of one.
fn elements(field: &Field) -> &[Field] {
    match field {
        Field::ListInternal(list) => list.elements(),
        lone => std::slice::from_ref(lone),
    }
}
